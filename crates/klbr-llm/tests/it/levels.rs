//! The conformance cases of effort levels.

use klbr_llm::levels::{self, Metadata};
use serde_json::Value;

use crate::shared;

#[test]
fn every_case_of_effort_levels_is_answered() {
    let Some(path) = shared::folder("conformance/levels.json") else { return };
    let cases: Value =
        serde_json::from_str(&std::fs::read_to_string(path).expect("the cases")).expect("JSON");
    let cases = cases["cases"].as_array().expect("cases");
    for case in cases {
        let model: Metadata = serde_json::from_value(case["model"].clone()).expect("metadata");
        let answer = match case["op"].as_str().expect("an operation") {
            "levels" => serde_json::to_value(levels::levels(&model)),
            "request" => {
                serde_json::to_value(levels::request(&model, case["level"].as_str().expect("a level")))
            }
            other => panic!("an operation that is not known: {other}"),
        };
        assert_eq!(answer.expect("an answer"), case["expect"], "{}", case["about"]);
    }
    println!("levels {}/{}", cases.len(), cases.len());
}

#[test]
fn a_model_whose_metadata_do_not_say_takes_the_usual_efforts() {
    let levels = levels::levels(&Metadata::default());
    assert_eq!(levels.levels, levels::FALLBACK);
    assert_eq!(levels.start, "medium");
}
