//! What holds for all bytes: reading never panics, and how they are cut changes nothing.

use proptest::prelude::*;

use crate::outcome::{read, read_cut};

/// Lines and pieces of lines that mean something to the reader, and some that do not.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let meaningful = prop::sample::select(vec![
        "data: ",
        "data:",
        "event: error\n",
        "event: ping\n",
        "error: ",
        ": comment\n",
        "\n",
        "\n\n",
        "\r\n\r\n",
        "\r\r",
        "[DONE]",
        "data: [DONE]\n\n",
        "data: {\"choices\":[{\"delta\":{\"content\":\"<think>a</thi\"}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"content\":\"nk>\\n é😀\"}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"content\":\"</think>b\"}}]}\n",
        "data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"━━━━━\\nllama-swap loading model: q\\n\"}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"reasoning\":\"\\n━━━━━\\n\"}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}}]}\r\n\r\n",
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":{\"x\":1}}}]}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}\n\n",
        "data: {\"error\":{\"message\":\"x\"}}",
        "\u{feff}",
        "é😀",
        "{\"",
        "}",
    ])
    .prop_map(|text| text.as_bytes().to_vec());
    prop_oneof![6 => meaningful, 1 => prop::collection::vec(any::<u8>(), 0..8)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_cut_of_the_same_bytes_gives_the_same_reply(
        pieces in prop::collection::vec(piece(), 0..16),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let bytes = pieces.concat();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.sort_unstable();
        let whole = read([bytes.as_slice()]);
        prop_assert_eq!(&read_cut(&bytes, cuts), &whole);
        prop_assert_eq!(&read(bytes.chunks(1)), &whole);
    }
}

#[test]
fn depth_is_no_danger() {
    let deep = "[".repeat(200_000);
    for field in ["content", "reasoning", "tool_calls"] {
        for closed in [deep.clone(), format!("{deep}{}", "]".repeat(deep.len()))] {
            let event = format!(
                "data: {{\"choices\":[{{\"delta\":{{\"{field}\":{closed}}}}}],\"error\":{closed}}}\n\n"
            );
            assert!(read([event.as_bytes()]).end.is_err());
        }
    }
}
