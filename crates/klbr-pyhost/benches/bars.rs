//! x
fn main() {
    println!(
        "{}\n{}\n{}",
        serde_json::to_string(&schemars::schema_for!(klbr_core::policy::Question)).unwrap(),
        serde_json::to_string(&schemars::schema_for!(klbr_core::policy::Answer)).unwrap(),
        serde_json::to_string(&schemars::schema_for!(klbr_core::policy::Slot)).unwrap()
    )
}
