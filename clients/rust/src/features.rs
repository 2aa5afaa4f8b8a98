//! What a worker must list before a host sends it.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Map, Value};

/// The features of which a worker must list one, for a field and for some of its values and forms.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Requirement {
    pub features: Vec<String>,
    pub values: HashMap<String, Vec<String>>,
    pub forms: HashMap<String, Vec<String>>,
    /// Members that the object around the field has wherever a form counts.
    pub when: HashMap<String, HashMap<String, String>>,
}

/// The requirements of a command by the path of the field. The empty path is the command itself.
type Requirements = HashMap<String, Requirement>;

/// What protocol 1.0 did not have, by command.
pub(crate) static NEWER: LazyLock<HashMap<String, Requirements>> =
    LazyLock::new(|| serde_json::from_str(include_str!("../features.json")).expect("the file is part of this crate"));

/// The features that a worker lists.
#[derive(Debug, Default)]
pub(crate) struct FeatureSet {
    listed: HashSet<String>,
    whole: HashSet<&'static str>,
}

impl FeatureSet {
    pub fn new(features: &[String]) -> Self {
        let mut set = Self { listed: features.iter().cloned().collect(), whole: HashSet::new() };
        let is_whole = |requirements: &Requirements| {
            requirements.values().all(|required| {
                let parts = required.values.values().chain(required.forms.values());
                parts.chain([&required.features]).all(|features| set.serves(features))
            })
        };
        set.whole = NEWER.iter().filter(|(_, all)| is_whole(all)).map(|(command, _)| command.as_str()).collect();
        set
    }

    pub fn lists(&self, feature: &str) -> bool {
        self.listed.contains(feature)
    }

    fn serves(&self, features: &[String]) -> bool {
        features.is_empty() || features.iter().any(|feature| self.listed.contains(feature))
    }

    /// Return the features that a command needs and that the worker does not list.
    pub fn missing(&self, command: &str, fields: &[u8]) -> Vec<String> {
        let Some(requirements) = NEWER.get(command).filter(|_| !self.whole.contains(command)) else {
            return Vec::new(); // without a look at the fields, which can have megabytes of images
        };
        let mut check = Check { set: self, requirements, missing: BTreeSet::new() };
        check.field("", |required| &required.features);
        if let Ok(object) = serde_json::from_slice(fields) {
            check.object("", &object);
        }
        check.missing.into_iter().collect()
    }
}

struct Check<'a> {
    set: &'a FeatureSet,
    requirements: &'a Requirements,
    missing: BTreeSet<String>,
}

impl<'a> Check<'a> {
    fn need(&mut self, features: &[String]) {
        if !self.set.serves(features) {
            self.missing.insert(features.join(" or "));
        }
    }

    fn field(&mut self, path: &str, features: impl Fn(&'a Requirement) -> &'a [String]) {
        if let Some(required) = self.requirements.get(path) {
            self.need(features(required));
        }
    }

    fn object(&mut self, path: &str, object: &Map<String, Value>) {
        for (name, value) in object {
            let field = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            self.value(&field, value);
        }
        self.absent(path, object);
    }

    fn value(&mut self, path: &str, value: &Value) {
        self.field(path, |required| &required.features);
        match value {
            Value::String(text) => {
                self.field(path, |required| required.values.get(text).map_or(&[], Vec::as_slice));
                self.field(path, |required| required.forms.get("string").map_or(&[], Vec::as_slice));
            }
            Value::Array(items) => {
                for item in items {
                    self.value(&format!("{path}[]"), item);
                }
            }
            Value::Object(object) => self.object(path, object),
            _ => {}
        }
    }

    /// Check the fields that an older worker requires.
    fn absent(&mut self, path: &str, object: &Map<String, Value>) {
        for (field, required) in self.requirements {
            let (parent, name) = field.rsplit_once('.').unwrap_or(("", field));
            let Some(features) = required.forms.get("absent") else { continue };
            let counts = |members: &HashMap<String, String>| {
                members.iter().all(|(name, value)| object.get(name).is_some_and(|found| found == value))
            };
            if parent == path && !object.contains_key(name) && required.when.get("absent").is_none_or(counts) {
                self.need(features);
            }
        }
    }
}
