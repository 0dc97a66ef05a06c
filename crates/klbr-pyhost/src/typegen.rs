//! Python dataclasses made from the Rust types of questions and answers. Owns the names; refuses to guess at a shape
//! that it does not know.

use std::fmt::Write as _;

use klbr_core::policy::{Answer, Question, Slot};
use serde_json::Value;

const HEAD: &str = r#"# Generated from the Rust types by `cargo run -p klbr-pyhost --bin generate-types`. Do not edit.
"""The questions that slots are asked, and the answers' types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

"#;

const FOOT: &str = r#"

def parse_question(body: dict[str, Any]) -> Question:
    """The question that the host sent."""
    kind = QUESTIONS[body["slot"]]
    values = {name: body[name] for name in kind.__match_args__ if name in body}
    for name, item in ITEMS.get(body["slot"], {}).items():
        values[name] = [item(**value) for value in values[name]]
    question: Question = kind(**values)
    return question
"#;

/// The text of the module `klbr._types`.
pub fn python_types() -> String {
    let question = schemars::schema_for!(Question).to_value();
    let answer = schemars::schema_for!(Answer).to_value();
    let mut names: Vec<String> = Vec::new();
    let mut out = HEAD.to_owned();
    let mut defs: Vec<(&String, &Value)> =
        [&question, &answer].into_iter().filter_map(|schema| schema["$defs"].as_object()).flatten().collect();
    defs.sort_by_key(|(name, def)| (def["type"] == "object", *name));
    defs.dedup_by_key(|(name, _)| *name);
    for (name, def) in &defs {
        definition(&mut out, &mut names, name, def);
    }
    let mut table = String::from("QUESTIONS: dict[str, Any] = {\n");
    let mut items = String::from("ITEMS: dict[str, dict[str, Any]] = {\n");
    let mut questions = Vec::new();
    for variant in variants(&question) {
        let slot = constant(variant, "slot");
        let name = class_name(&slot);
        let base = variant.get("$ref").map(reference);
        let doc = slot_doc(&slot);
        class(&mut out, &name, base.as_deref(), &doc, variant, Some("slot"));
        writeln!(table, "    {slot:?}: {name},").expect("a string takes everything");
        for (field, item) in item_classes(variant) {
            writeln!(items, "    {slot:?}: {{{field:?}: {item}}},").expect("a string takes everything");
        }
        questions.push(name.clone());
        names.push(name);
    }
    for variant in variants(&answer) {
        let (kind, value) = (constant(variant, "answer"), &variant["properties"]["value"]);
        if value["properties"].is_object() {
            let name = capitalised(&kind);
            class(&mut out, &name, None, text(&variant["description"]), value, None);
            names.push(name);
        }
    }
    writeln!(out, "Question = (\n    {}\n)\n", questions.join("\n    | "))
        .expect("a string takes everything");
    names.push("Question".to_owned());
    out.push_str(&table);
    out.push_str("}\n\n");
    out.push_str(&items);
    out.push_str("}\n\nANSWERS = {\n");
    for slot in all_slots() {
        writeln!(out, "    {:?}: {:?},", slot.as_str(), answer_kind(slot))
            .expect("a string takes everything");
    }
    out.push_str("}\n\n");
    names.sort();
    let quoted: Vec<String> = names.iter().map(|name| format!("    {name:?},\n")).collect();
    write!(out, "__all__ = [\n{}]\n", quoted.concat()).expect("a string takes everything");
    out.push_str(FOOT);
    out
}

/// Every slot that exists, in their order.
pub fn all_slots() -> Vec<Slot> {
    let schema = schemars::schema_for!(Slot).to_value();
    let names = variants(&schema).map(|variant| variant["const"].clone());
    names.map(|name| serde_json::from_value(name).expect("the schema names the slots")).collect()
}

/// Which of the answers a slot takes, as [`Answer`] is tagged.
pub fn answer_kind(slot: Slot) -> &'static str {
    match slot {
        Slot::EventPriority => "priority",
        Slot::EventAccept | Slot::Wake | Slot::Age | Slot::CompactWhen => "yes",
        Slot::ContextSelect => "events",
        Slot::Limits | Slot::CompactKeep => "count",
        Slot::BatchDelay | Slot::Idle => "delay",
        Slot::FrameRender
        | Slot::ContextBlocks
        | Slot::Nudge
        | Slot::DeliveryFormat
        | Slot::DeliveryTarget
        | Slot::ResultShape
        | Slot::CompactPrompt => "text",
        Slot::Plan => "plan",
        Slot::ActionReview | Slot::DeliveryReview => "verdict",
    }
}

fn slot_doc(slot: &str) -> String {
    let schema = schemars::schema_for!(Slot).to_value();
    let doc = variants(&schema).find(|variant| variant["const"] == slot);
    doc.map(|variant| text(&variant["description"]).to_owned()).unwrap_or_default()
}

fn definition(out: &mut String, names: &mut Vec<String>, name: &str, def: &Value) {
    let doc = text(&def["description"]);
    let alternatives: Vec<&Value> = variants(def).collect();
    if !alternatives.is_empty() && alternatives.iter().all(|variant| variant["const"].is_string()) {
        let words: Vec<String> = alternatives.iter().map(|variant| variant["const"].to_string()).collect();
        writeln!(out, "{name} = Literal[{}]\n\"\"\"{doc}\"\"\"\n", words.join(", "))
            .expect("a string takes everything");
    } else if !alternatives.is_empty() {
        let tag = tag_of(alternatives[0]);
        let mut classes = Vec::new();
        for variant in alternatives {
            let class_name = capitalised(&constant(variant, &tag));
            class(out, &class_name, None, text(&variant["description"]), variant, Some(&tag));
            classes.push(class_name);
        }
        writeln!(out, "{name} = {}\n\"\"\"{doc}\"\"\"\n", classes.join(" | "))
            .expect("a string takes everything");
        names.extend(classes);
    } else if def["properties"].is_object() {
        class(out, name, None, doc, def, None);
    } else {
        writeln!(out, "{name} = {}\n\"\"\"{doc}\"\"\"\n", python_type(def))
            .expect("a string takes everything");
    }
    names.push(name.to_owned());
}

fn class(out: &mut String, name: &str, base: Option<&str>, doc: &str, schema: &Value, tag: Option<&str>) {
    let base = base.map(|base| format!("({base})")).unwrap_or_default();
    write!(out, "\n@dataclass(frozen=True, slots=True)\nclass {name}{base}:\n    \"\"\"{doc}\"\"\"\n")
        .expect("a string takes everything");
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let properties = schema["properties"].as_object();
    let optional = properties.into_iter().flatten().map(|(name, _)| name.as_str());
    let optional = optional.filter(|name| !required.contains(name));
    for field in required.iter().copied().chain(optional).filter(|field| Some(*field) != tag) {
        let property = &schema["properties"][field];
        let default = if required.contains(&field) { "" } else { " = None" };
        let (kind, doc) = (python_type(property), text(&property["description"]));
        write!(out, "\n    {field}: {kind}{default}\n    \"\"\"{doc}\"\"\"\n")
            .expect("a string takes everything");
    }
    out.push('\n');
}

fn python_type(schema: &Value) -> String {
    if let Some(target) = schema.get("$ref") {
        return reference(target);
    }
    let one = |name: &str| match name {
        "string" => "str",
        "integer" => "int",
        "number" => "float",
        "boolean" => "bool",
        "null" => "None",
        other => panic!("no Python type is known for {other}; teach it to {}", module_path!()),
    };
    match &schema["type"] {
        Value::String(name) if name == "array" => format!("list[{}]", python_type(&schema["items"])),
        Value::String(name) => one(name).to_owned(),
        Value::Array(names) => {
            let names: Vec<&str> = names.iter().filter_map(Value::as_str).map(one).collect();
            names.join(" | ")
        }
        other => panic!("a schema without a type that is known: {other} in {schema}"),
    }
}

/// The fields of a question that list things with names of their own, and what those are.
fn item_classes(question: &Value) -> impl Iterator<Item = (&String, String)> {
    let properties = question["properties"].as_object().into_iter().flatten();
    properties.filter_map(|(name, field)| Some((name, reference(field["items"].get("$ref")?))))
}

fn variants(schema: &Value) -> impl Iterator<Item = &Value> {
    schema["oneOf"].as_array().into_iter().flatten()
}

fn constant(variant: &Value, tag: &str) -> String {
    variant["properties"][tag]["const"].as_str().unwrap_or_default().to_owned()
}

fn tag_of(variant: &Value) -> String {
    let properties = variant["properties"].as_object().into_iter().flatten();
    let mut tags = properties.filter(|(_, property)| property["const"].is_string());
    tags.next().map(|(name, _)| name.clone()).unwrap_or_default()
}

fn reference(target: &Value) -> String {
    target.as_str().and_then(|path| path.rsplit('/').next()).unwrap_or_default().to_owned()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// `attention.batch_delay` becomes `AttentionBatchDelay`.
fn class_name(slot: &str) -> String {
    slot.split(['.', '_']).map(capitalised).collect()
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_types_are_the_ones_of_this_build() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/python/klbr/_types.py");
        let committed = std::fs::read_to_string(path).unwrap();
        assert!(committed == python_types(), "run `cargo run -p klbr-pyhost --bin generate-types`");
    }

    #[test]
    fn every_slot_is_known() {
        let names: Vec<&str> = all_slots().into_iter().map(Slot::as_str).collect();
        assert_eq!(names.len(), 20);
        assert!(names.contains(&"attention.batch_delay"));
    }
}
