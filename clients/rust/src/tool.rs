//! The tools that a model may call.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A function that the model may call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// "function", the only kind, or None.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The function.
    pub function: Function,
}

impl Tool {
    /// Return a tool. `parameters` is a JSON Schema of the arguments object.
    pub fn new(name: impl Into<String>, description: impl Into<String>, parameters: Value) -> Self {
        let function = Function {
            name: name.into(),
            description: Some(description.into()),
            parameters: Some(parameters),
            strict: None,
        };
        Self { kind: None, function }
    }
}

/// A description of a function for the model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// What it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// A JSON Schema of the arguments object. None: no arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Value>,
    /// Whether to enforce the schema even if the model is free to call or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strict: Option<bool>,
}

/// A decision whether the model calls tools.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// The model decides.
    Auto,
    /// The model does not see the tools.
    None,
    /// The model makes at least one call.
    Required,
    /// The model calls this function.
    #[serde(untagged)]
    Named {
        /// The function's name.
        name: String,
    },
}
