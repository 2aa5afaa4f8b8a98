//! The types against protocol/schema: a field or a value that is added there fails these tests until it is here.

use std::collections::{BTreeMap, HashMap};
use std::fs;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::features::{NEWER, Requirement};
use crate::{control, decode, error, event, format, message, params, results, tool};

/// Return a file of the schema. The crate's archive does not contain it: there the tests have nothing to do.
fn schema(name: &str) -> Option<Value> {
    let path = format!("{}/../../protocol/schema/v1/{name}", env!("CARGO_MANIFEST_DIR"));
    fs::read(path).ok().map(|text| serde_json::from_slice(&text).unwrap())
}

/// OpenAI's shapes of what this crate sends in the protocol's own shape.
const OTHER_SHAPES: [&str; 4] = ["ImageUrl", "ImageUrlPart", "CalledFunction", "ChosenFunction"];
const OTHER_FIELDS: [(&str, &str); 4] =
    [("CalledTool", "type"), ("CalledTool", "function"), ("NamedTool", "type"), ("NamedTool", "function")];

/// Reads JSON as a type of this crate, and writes it again.
type RoundTrip = fn(Value) -> Result<Value, String>;

fn of<T: DeserializeOwned + Serialize>(value: Value) -> Result<Value, String> {
    let read: T = serde_json::from_value(value).map_err(|error| error.to_string())?;
    Ok(serde_json::to_value(read).unwrap())
}

/// Return the type of each definition of the schema that is an object.
fn types() -> HashMap<&'static str, RoundTrip> {
    let types: [(&str, RoundTrip); 67] = [
        ("Hello", of::<control::Greeting>),
        ("Load", of::<params::Load>),
        ("Unload", of::<control::Nothing>),
        ("Info", of::<control::Nothing>),
        ("Generate", of::<params::Generate>),
        ("Chat", of::<params::Chat>),
        ("Tokenize", of::<params::Tokenize>),
        ("Embed", of::<params::Embed>),
        ("Transcribe", of::<params::Transcribe>),
        ("Speak", of::<params::Speak>),
        ("Cache", of::<control::Cache>),
        ("Cancel", of::<control::Cancel>),
        ("Ping", of::<control::Nothing>),
        ("Stats", of::<control::Nothing>),
        ("Quit", of::<control::Quit>),
        ("Message", of::<message::Message>),
        ("ContextFile", of::<params::ContextFile>),
        ("Tool", of::<tool::Tool>),
        ("Function", of::<tool::Function>),
        ("CalledTool", of::<message::ToolCall>),
        ("NamedTool", of::<tool::ToolChoice>),
        ("Media", of::<message::Media>),
        ("TextPart", of::<message::Part>),
        ("ImagePart", of::<message::Part>),
        ("AudioPart", of::<message::Part>),
        ("TokensPart", of::<message::Part>),
        ("JsonObjectFormat", of::<format::Format>),
        ("JsonSchemaFormat", of::<format::Format>),
        ("RegexFormat", of::<format::Format>),
        ("LarkFormat", of::<format::Format>),
        ("ChoiceFormat", of::<format::Format>),
        ("Token", of::<event::Token>),
        ("ToolCall", of::<event::ToolCallDelta>),
        ("Progress", of::<event::Progress>),
        ("Embedding", of::<decode::EmbeddingPart>),
        ("Segment", of::<event::Segment>),
        ("Audio", of::<decode::AudioPart>),
        ("Error", of::<error::RequestError>),
        ("HelloDone", of::<results::Hello>),
        ("ModelDone", of::<results::Model>),
        ("UnloadDone", of::<decode::Freed>),
        ("ResultDone", of::<event::Finish>),
        ("TokenizeDone", of::<decode::Count>),
        ("EmbedDone", of::<decode::EmbedEnd>),
        ("TranscribeDone", of::<results::TranscriptEnd>),
        ("SpeakDone", of::<results::SpeechEnd>),
        ("CacheDone", of::<decode::Freed>),
        ("CancelDone", of::<decode::Matched>),
        ("PingDone", of::<results::PingReply>),
        ("StatsDone", of::<results::Stats>),
        ("QuitDone", of::<control::Nothing>),
        ("TopLogprob", of::<event::TopLogprob>),
        ("Logprob", of::<event::Logprob>),
        ("Usage", of::<event::Usage>),
        ("Timings", of::<event::Timings>),
        ("Choice", of::<event::Choice>),
        ("CacheMiss", of::<event::CacheMiss>),
        ("Word", of::<event::Word>),
        ("Quantization", of::<results::Quantization>),
        ("RankGroup", of::<results::RankGroup>),
        ("RankInfo", of::<results::Ranks>),
        ("SamplingDefaults", of::<results::SamplingDefaults>),
        ("Limits", of::<results::Limits>),
        ("RequestStats", of::<results::RequestStats>),
        ("TokenStats", of::<results::TokenStats>),
        ("MemoryStats", of::<results::MemoryStats>),
        ("CacheStats", of::<results::CacheStats>),
    ];
    types.into_iter().collect()
}

/// Return a value that a schema accepts, with all fields.
fn sample(schema: &Value, definitions: &Value) -> Value {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.rsplit('/').next().unwrap();
        return sample_of(name, &definitions[name], definitions);
    }
    if let Some(value) = schema.get("const") {
        return value.clone();
    }
    if let Some(values) = schema["enum"].as_array() {
        return values[0].clone();
    }
    if let Some(union) = schema["anyOf"].as_array().or(schema["oneOf"].as_array()) {
        let is_other = |one: &Value| OTHER_SHAPES.iter().any(|name| one["$ref"] == format!("#/$defs/{name}"));
        return sample(union.iter().rfind(|one| !is_other(one)).unwrap(), definitions);
    }
    match schema["type"].as_str() {
        Some("string") => json!("QUJDRA=="),
        Some("integer") => json!(schema["minimum"].as_u64().unwrap_or(0).max(1)),
        Some("number") => json!(0.5),
        Some("boolean") => json!(true),
        Some("array") => match schema["prefixItems"].as_array() {
            Some(items) => items.iter().map(|item| sample(item, definitions)).collect(),
            None => {
                let length = schema["minItems"].as_u64().unwrap_or(1).max(1);
                (0..length).map(|_| sample(&schema["items"], definitions)).collect()
            }
        },
        Some("object") if schema["properties"].is_object() => sample_of("", schema, definitions),
        Some("object") => json!({ "7": 0.5 }),
        _ => Value::Null,
    }
}

fn sample_of(name: &str, definition: &Value, definitions: &Value) -> Value {
    let Some(properties) = definition["properties"].as_object() else {
        return sample(definition, definitions);
    };
    let envelope = definition["properties"]["cmd"].is_object() || definition["properties"]["event"].is_object();
    let is_envelope = |field: &str| envelope && ["id", "cmd", "event"].contains(&field);
    let is_other = |field: &str| OTHER_FIELDS.contains(&(name, field));
    let members = properties.iter().filter(|(field, _)| !is_envelope(field) && !is_other(field));
    members.map(|(field, schema)| (field.clone(), sample(schema, definitions))).collect::<Map<_, _>>().into()
}

#[test]
fn every_field_of_the_protocol_has_one_here() {
    let Some(schema) = schema("schema.json") else { return };
    let (definitions, types) = (&schema["$defs"], types());
    for (name, definition) in definitions.as_object().unwrap() {
        if definition["properties"].is_object() && !OTHER_SHAPES.contains(&name.as_str()) {
            let read = types.get(name.as_str()).unwrap_or_else(|| panic!("no type stands for {name}"));
            let whole = sample_of(name, definition, definitions);
            assert_eq!(read(whole.clone()), Ok(whole), "{name}");
        }
    }
}

#[test]
fn an_event_without_a_required_field_is_malformed_and_without_another_is_not() {
    let Some(schema) = schema("schema.json") else { return };
    let (definitions, types) = (&schema["$defs"], types());
    for (name, definition) in definitions.as_object().unwrap() {
        let Some(properties) = definition["properties"].as_object().filter(|all| all.contains_key("event")) else {
            continue;
        };
        let whole = sample_of(name, definition, definitions);
        for field in properties.keys().filter(|field| !["id", "cmd", "event"].contains(&field.as_str())) {
            let required = definition["required"].as_array().unwrap().contains(&json!(field));
            let (mut absent, mut null, mut wrong) = (whole.clone(), whole.clone(), whole.clone());
            absent.as_object_mut().unwrap().remove(field);
            null[field] = Value::Null;
            wrong[field] = if whole[field].is_object() { json!("wrong") } else { json!({ "wrong": [] }) };
            let read = types[name.as_str()];
            assert_eq!(read(absent).is_err(), required, "{name} without {field}");
            assert_eq!(read(null).is_err(), required, "{name} with {field}: null");
            assert!(read(wrong.clone()).is_err(), "{name} with a wrong {field}");
            for length in 0..10 {
                wrong[field] = json!(vec![1; length]);
                let is_list = whole[field].is_array();
                assert!(is_list || !required || read(wrong.clone()).is_err(), "{name} with a list as {field}");
            }
        }
    }
}

#[test]
fn every_command_event_code_and_value_is_known() {
    let (Some(meta), Some(schema)) = (schema("meta.json"), schema("schema.json")) else { return };
    let (definitions, types) = (&schema["$defs"], types());
    for (command, described) in meta["commands"].as_object().unwrap() {
        let done = described["done"].as_str().unwrap();
        let whole = sample_of(done, &definitions[done], definitions);
        assert!(types.contains_key(done));
        let read = decode::done(command, whole.as_object().unwrap().clone());
        assert!(read.is_ok(), "{command}: {read:?}");
        let is_quit = matches!(read, Ok(decode::Done::Quit));
        assert_eq!(is_quit, command == "quit", "{command} is not known");
    }
    for kind in meta["events"].as_object().unwrap().keys() {
        assert!(decode::is_known(kind) || ["done", "error"].contains(&kind.as_str()), "{kind}");
    }
    for code in meta["errors"].as_object().unwrap().keys() {
        let known: error::ErrorCode = serde_json::from_value(json!(code)).unwrap();
        assert!(!matches!(known, error::ErrorCode::Unknown(_)), "{code}");
    }
    let values = |path: &str| definitions.pointer(path).unwrap()["enum"].as_array().unwrap().clone();
    for reason in values("/ResultDone/properties/finish_reason") {
        assert_ne!(serde_json::from_value::<event::FinishReason>(reason).unwrap(), event::FinishReason::Other);
    }
    for channel in values("/Token/properties/channel") {
        let known = serde_json::from_value::<event::Channel>(channel).unwrap();
        assert!(!matches!(known, event::Channel::Unknown(_)));
    }
    for role in values("/Message/properties/role") {
        assert!(serde_json::from_value::<message::Role>(role).is_ok());
    }
}

/// Return the features of values or forms that need others than their field.
fn parts(of: &Value, field: &[String]) -> HashMap<String, Vec<String>> {
    let all = of.as_object().into_iter().flatten().map(|(name, part)| (name.clone(), features(part)));
    all.filter(|(_, features)| !features.is_empty() && features != field).collect()
}

fn features(of: &Value) -> Vec<String> {
    serde_json::from_value(of.get("features").cloned().unwrap_or(json!([]))).unwrap()
}

/// The file of the Go client is made from the same schema, so `cp ../go/features.json .` brings this one in line.
#[test]
fn the_features_follow_the_schema() {
    let Some(meta) = schema("meta.json") else { return };
    for (command, described) in meta["commands"].as_object().unwrap() {
        let mut expected = BTreeMap::new();
        expected.insert(String::new(), Requirement { features: features(described), ..Requirement::default() });
        for (path, field) in described["fields"].as_object().unwrap() {
            let own = features(field);
            let (values, forms) = (parts(&field["values"], &own), parts(&field["forms"], &own));
            let when = field["forms"].as_object().into_iter().flatten().filter_map(|(name, form)| {
                Some((name.clone(), serde_json::from_value(form.get("when")?.clone()).unwrap()))
            });
            expected.insert(path.clone(), Requirement { features: own, values, forms, when: when.collect() });
        }
        expected.retain(|_, required| *required != Requirement::default());
        let found: BTreeMap<_, _> = NEWER.get(command).into_iter().flatten().collect();
        assert_eq!(found, expected.iter().collect(), "{command}");
    }
}
