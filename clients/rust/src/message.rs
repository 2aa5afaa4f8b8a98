use base64::{Engine, prelude::BASE64_STANDARD};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The role of a speaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Instructions for the model.
    System,
    /// The same as `System`.
    Developer,
    /// The user.
    User,
    /// The model.
    Assistant,
    /// The result of a call.
    Tool,
}

/// A turn of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// The speaker.
    pub role: Role,
    /// A text, or parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Content>,
    /// The reasoning of an assistant's message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// The calls of an assistant's message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<Vec<ToolCall>>,
    /// In a tool's message: the id of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// In a tool's message: the function. In others: the speaker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl Message {
    /// Return a message with a text, or with parts.
    pub fn new(role: Role, content: impl Into<Content>) -> Self {
        let content = Some(content.into());
        Self { role, content, reasoning: None, tool_calls: None, tool_call_id: None, name: None }
    }

    /// Return instructions for the model.
    pub fn system(content: impl Into<Content>) -> Self {
        Self::new(Role::System, content)
    }

    /// Return a user's message.
    pub fn user(content: impl Into<Content>) -> Self {
        Self::new(Role::User, content)
    }

    /// Return an earlier answer of the model.
    pub fn assistant(content: impl Into<Content>) -> Self {
        Self::new(Role::Assistant, content)
    }
}

/// The content of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Content {
    /// A text.
    Text(String),
    /// Texts, images and sounds.
    Parts(Vec<Part>),
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<Part>> for Content {
    fn from(parts: Vec<Part>) -> Self {
        Self::Parts(parts)
    }
}

/// A text, an image or a sound. Tokens are inputs of [`Worker::embed`](crate::Worker::embed) alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Part {
    /// A text.
    Text {
        /// The text.
        text: String,
    },
    /// An image.
    Image {
        /// Its file.
        media: Media,
    },
    /// A sound.
    Audio {
        /// Its file.
        media: Media,
    },
    /// An input as tokens, which the model receives as they are.
    Tokens {
        /// Tokens of the model's vocabulary.
        token_ids: Vec<u64>,
    },
}

impl From<&str> for Part {
    fn from(text: &str) -> Self {
        Self::Text { text: text.into() }
    }
}

impl From<String> for Part {
    fn from(text: String) -> Self {
        Self::Text { text }
    }
}

/// An image or a sound. Exactly one of the fields is set. The operator of the worker decides which files and addresses it
/// may read; `data` always works.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Media {
    /// Base64, or a data URI.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// A file on the worker's machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// An address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

impl Media {
    /// Return media with the bytes of a file, such as a PNG or a WAV.
    pub fn data(file: impl AsRef<[u8]>) -> Self {
        Self { data: Some(BASE64_STANDARD.encode(file)), ..Self::default() }
    }

    /// Return a file on the worker's machine.
    pub fn path(path: impl Into<String>) -> Self {
        Self { path: Some(path.into()), ..Self::default() }
    }

    /// Return a file at an address.
    pub fn url(url: impl Into<String>) -> Self {
        Self { url: Some(url.into()), ..Self::default() }
    }
}

/// A call of a function that the model asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolCall {
    /// The call's id.
    pub id: String,
    /// The function.
    pub name: String,
    /// The arguments: an object, or its JSON text. In an answer it is an object; check it against your schema before you use
    /// it.
    pub arguments: Value,
}

impl ToolCall {
    /// Return a message with the call's result, to send to the model next.
    pub fn result(&self, content: impl Into<Content>) -> Message {
        let mut message = Message::new(Role::Tool, content);
        message.tool_call_id = Some(self.id.clone());
        message.name = Some(self.name.clone());
        message
    }
}
