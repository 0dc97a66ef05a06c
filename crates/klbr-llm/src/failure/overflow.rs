//! The words in which providers say that a request is larger than the model's context.
//!
//! Owns the wordings and where they put the size. Refuses statuses that mean something else for certain.

/// What is said of a context that is too small; lower-case.
const WORDINGS: [&str; 25] = [
    "context_length_exceeded",
    "exceed_context_size",
    "exceeds the available context size",
    "maximum context length",
    "maximum model length",
    "maximum prompt length",
    "exceed context limit",
    "exceeds context limit",
    "exceeds the context",
    "exceeds the model's context",
    "exceed the context",
    "context window exceeds",
    "context window is full",
    "exceeds the maximum number of tokens allowed",
    "exceeded model token limit",
    "prompt exceeds max length",
    "prompt is too long",
    "prompt too long",
    "input is too long for requested model",
    "too many input tokens",
    "model_max_prompt_tokens_exceeded",
    "reduce the length of the messages",
    "request too large",
    "when context the overflows",
    "greater than the context length",
];

/// What stands before the size.
const BEFORE_LIMIT: [&str; 12] = [
    "maximum context length is ",
    "maximum context length of ",
    "maximum prompt length is ",
    "maximum model length of ",
    "available context size (",
    "context length of only ",
    "number of tokens allowed (",
    "model token limit: ",
    "exceeds the limit of ",
    " > ",
    "must be <= ",
    "limit ",
];

/// Whether a provider's words, lower-case, say that the request does not fit.
pub(super) fn is_in(status: Option<u16>, haystack: &str) -> bool {
    let possible = match status {
        Some(status) => matches!(status, 400 | 413 | 422 | 429 | 500 | 503),
        None => true,
    };
    let token_sum = haystack.contains("`inputs` tokens") && haystack.contains("must be <=");
    let said = token_sum || WORDINGS.iter().any(|wording| haystack.contains(wording));
    possible && (said || status == Some(413))
}

/// The context's size in tokens, if the words name it.
pub(super) fn limit_in(haystack: &str) -> Option<u64> {
    let named = BEFORE_LIMIT.iter().find_map(|before| number_after(haystack, before));
    named.or_else(|| {
        let before = haystack.split(" maximum context length").next()?;
        number_after(&format!(" {before}"), " with ").filter(|_| before.len() < haystack.len())
    })
}

fn number_after(haystack: &str, before: &str) -> Option<u64> {
    let (_, after) = haystack.split_once(before)?;
    let digits: String =
        after.trim_start().chars().take_while(|char| char.is_ascii_digit() || *char == ',').collect();
    digits.replace(',', "").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wording_is_recognised_with_its_size() {
        for (words, limit) in [
            ("This model's maximum context length is 8192 tokens. However, you requested 9000", Some(8192)),
            (
                "request (2064 tokens) exceeds the available context size (512 tokens), try increasing it",
                Some(512),
            ),
            (r#"{"error":{"type":"exceed_context_size_error","n_prompt_tokens":9,"n_ctx":4096}}"#, None),
            ("prompt is too long: 210000 tokens > 200000 maximum", Some(200_000)),
            (
                "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
                Some(1_048_576),
            ),
            (
                "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
                Some(32768),
            ),
            (
                "This model's maximum prompt length is 131,072 but the request contains 200000 tokens.",
                Some(131_072),
            ),
            ("The decoder prompt (length 5000) is longer than the maximum model length of 4096.", Some(4096)),
            (
                "prompt token count of 70000 exceeds the limit of 64000\",\"code\":\"model_max_prompt_tokens_exceeded",
                Some(64000),
            ),
            ("`inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000", Some(8193)),
            (
                "the model is loaded with context length of only 4096 tokens, when context the overflows",
                Some(4096),
            ),
            (
                "Request too large for model on tokens per minute (TPM): Limit 6000, Requested 9000",
                Some(6000),
            ),
            ("Your request exceeded model token limit: 8192", Some(8192)),
            ("Input is too long for requested model.", None),
            ("Please reduce the length of the messages or completion.", None),
            ("input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000", Some(200_000)),
        ] {
            let haystack = words.to_lowercase();
            assert!(is_in(Some(400), &haystack), "{words}");
            assert!(is_in(None, &haystack), "{words}");
            assert_eq!(limit_in(&haystack), limit, "{words}");
        }
    }

    #[test]
    fn other_errors_are_not() {
        assert!(!is_in(Some(401), "maximum context length"));
        assert!(!is_in(Some(400), "unknown field `context`"));
        assert!(is_in(Some(413), ""));
    }
}
