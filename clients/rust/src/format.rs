//! The forms of answers.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The form of an answer, which the worker enforces token by token.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Format {
    /// Any JSON object.
    JsonObject,
    /// JSON that a JSON Schema accepts.
    JsonSchema {
        /// The schema.
        schema: Value,
    },
    /// Text that an expression in the syntax of the crate regex matches as a whole.
    Regex {
        /// The expression.
        pattern: String,
    },
    /// Text of a context-free grammar in llguidance's variant of Lark's syntax.
    Lark {
        /// The grammar.
        grammar: String,
    },
    /// One of several texts.
    Choice {
        /// The texts.
        choices: Vec<String>,
    },
}
