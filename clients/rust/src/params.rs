//! The parameters of commands. Their fields have the protocol's names; None leaves the choice to the worker.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::format::Format;
use crate::message::{Media, Message, Part};
use crate::tool::{Tool, ToolChoice};

/// Defines a command's parameters: required fields, and optional ones with a method each that sets it.
macro_rules! params {
    (
        $(#[$meta:meta])* struct $name:ident;
        required { $($(#[$must_doc:meta])* $must:ident: $must_type:ty,)* }
        $(optional { $($(#[$doc:meta])* $field:ident: $type:ty,)* })*
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $($(#[$must_doc])* pub $must: $must_type,)*
            $($(
                $(#[$doc])*
                #[serde(default, skip_serializing_if = "Option::is_none")]
                pub $field: Option<$type>,
            )*)*
        }

        impl $name {
            $($(
                $(#[$doc])*
                pub fn $field(mut self, value: impl Into<$type>) -> Self {
                    self.$field = Some(value.into());
                    self
                }
            )*)*
        }
    };
}

/// Defines parameters that have those of sampling as well.
macro_rules! params_of_an_answer {
    ($($head:tt)*) => {
        params! {
            $($head)*
            optional {
                /// Maximum number of tokens. None: the rest of the context.
                max_tokens: u64,
                /// Tokens before the model can end its turn.
                min_tokens: u64,
                /// Whether the model cannot end its turn.
                ignore_eos: bool,
                /// Randomness. None: greedy.
                temperature: f64,
                /// Probability mass of the tokens to choose from.
                top_p: f64,
                /// Number of tokens to choose from.
                top_k: u64,
                /// Minimum probability, relative to the most probable token.
                min_p: f64,
                /// Probability of excluding the top choices: all tokens above `xtc_threshold` but the least probable of them.
                xtc_probability: f64,
                /// The threshold of `xtc_probability`. None: 0.1.
                xtc_threshold: f64,
                /// Factor against tokens that occurred.
                repetition_penalty: f64,
                /// Subtracted from the logits of tokens that occurred.
                presence_penalty: f64,
                /// Subtracted from the logits of tokens for each time that they occurred.
                frequency_penalty: f64,
                /// Newest tokens that penalties consider. None: 64. 0: all.
                penalty_window: u64,
                /// Strength of DRY, the penalty on tokens that would continue a repetition. None: off.
                dry_multiplier: f64,
                /// Factor of that penalty for each further token of the repetition. None: 1.75.
                dry_base: f64,
                /// Tokens of a repetition from which its continuation is penalized. None: 2.
                dry_allowed_length: u64,
                /// Newest tokens in which DRY looks for repetitions. None or 0: all.
                dry_range: u64,
                /// Strings across which no repetition reaches. None: the worker's four.
                dry_sequence_breakers: Vec<String>,
                /// Strings that the answer must not contain.
                banned_strings: Vec<String>,
                /// Values to add to the logits of tokens.
                logit_bias: BTreeMap<u64, f64>,
                /// The seed. None: random; the end of the answer has it.
                seed: u64,
                /// The answer ends before the first of these.
                stop: Vec<String>,
                /// Whether the stop string is part of the answer.
                include_stop: bool,
                /// Whether to return the log-probability of each token.
                logprobs: bool,
                /// Number of the most probable tokens to return in each place, at most 20. Needs `logprobs`.
                top_logprobs: u64,
                /// Number of answers, at most 16.
                n: u64,
                /// The form of the answer. None: free text.
                format: Format,
                /// Where to cut a long prompt: "left", "middle" or "none".
                truncate: String,
                /// "on", "off" or "pin".
                cache: String,
                /// Whether to report why tokens did not come from the cache.
                cache_report: bool,
                /// Milliseconds after which the request ends with the answer so far.
                timeout_ms: u64,
            }
        }
    };
}

params! {
    /// The parameters of [`Worker::load`](crate::Worker::load).
    struct Load;
    required {}
    optional {
        /// A folder, a hub id (owner/name) or an alias. None: the worker's default model.
        path: String,
        /// Whether code in the model's folder may run.
        trust_remote_code: bool,
        /// A folder with a LoRA adapter.
        adapter_path: String,
        /// A smaller model, which proposes tokens.
        draft_path: String,
        /// Name of one of the model's chat templates.
        chat_template_name: String,
        /// Name of the format in which the model writes tool calls. None: the worker finds it.
        tool_format: String,
        /// Maximum number of tokens of prompt and answer together.
        context_len: u64,
        /// 4 or 8 bits of each cached key and value.
        kv_bits: u64,
        /// `float32`, `bfloat16` or `float16`. None: the worker's choice.
        dtype: String,
        /// Whether to load even a model that does not seem to fit into memory.
        force: bool,
        /// The text that opens the reasoning.
        reasoning_start: String,
        /// The text that ends the reasoning.
        reasoning_end: String,
        /// Whether to use the model's own sampling defaults.
        generation_config: bool,
    }
}

impl Load {
    /// Return the parameters for a folder, a hub id (owner/name) or an alias.
    pub fn new(path: impl Into<String>) -> Self {
        Self::default().path(path)
    }
}

impl From<&str> for Load {
    fn from(path: &str) -> Self {
        Self::new(path)
    }
}

params_of_an_answer! {
    /// The parameters of [`Worker::generate`](crate::Worker::generate).
    struct Generate;
    required {
        /// A text, or tokens.
        prompt: Prompt,
    }
    optional {
        /// The text after a gap, which the answer fills. `prompt` is the text before it; both may be empty. It needs a
        /// model with the capability "suffix".
        suffix: String,
        /// With `suffix`: other files, the most relevant last.
        context_files: Vec<ContextFile>,
        /// Whether to return the log-probability of each token of the prompt.
        prompt_logprobs: bool,
    }
}

impl Generate {
    /// Return the parameters for a prompt: a text, or tokens.
    pub fn new(prompt: impl Into<Prompt>) -> Self {
        Self { prompt: prompt.into(), ..Self::default() }
    }
}

impl<T: Into<Prompt>> From<T> for Generate {
    fn from(prompt: T) -> Self {
        Self::new(prompt)
    }
}

/// A text or tokens to continue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Prompt {
    /// A text.
    Text(String),
    /// Tokens.
    Tokens(Vec<u64>),
}

impl Default for Prompt {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

impl From<&str> for Prompt {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Prompt {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<u64>> for Prompt {
    fn from(tokens: Vec<u64>) -> Self {
        Self::Tokens(tokens)
    }
}

/// Another file of the project in which the model fills a gap, or a part of one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContextFile {
    /// Its name.
    pub name: String,
    /// Its text.
    pub text: String,
}

params_of_an_answer! {
    /// The parameters of [`Worker::chat`](crate::Worker::chat).
    struct Chat;
    required {
        /// The conversation.
        messages: Vec<Message>,
    }
    optional {
        /// Functions that the model may call.
        tools: Vec<Tool>,
        /// Whether the model calls tools. None: it decides.
        tool_choice: ToolChoice,
        /// False: the answer ends after the first call.
        parallel_tool_calls: bool,
        /// "auto", "on" or "off".
        reasoning: String,
        /// How much the model reasons, if it does: "minimal" to "max".
        reasoning_effort: String,
        /// Maximum number of reasoning tokens.
        reasoning_budget: u64,
        /// A Jinja template instead of the model's.
        chat_template: String,
        /// Variables for the template.
        template_args: Map<String, Value>,
        /// Whether to open the assistant's turn. None: true.
        add_generation_prompt: bool,
        /// Whether the answer continues the last message.
        continue_final_message: bool,
        /// The start of the reply, which is in no event.
        prefix: String,
        /// Whether to refuse media that the model does not take.
        strict_media: bool,
    }
}

impl Chat {
    /// Return the parameters for a conversation.
    pub fn new(messages: impl IntoIterator<Item = Message>) -> Self {
        Self { messages: messages.into_iter().collect(), ..Self::default() }
    }
}

impl From<&str> for Chat {
    fn from(text: &str) -> Self {
        Self::new([Message::user(text)])
    }
}

params! {
    /// The parameters of [`Worker::tokenize`](crate::Worker::tokenize): exactly one of `prompt`, `messages` and `token_ids`,
    /// and those of [`Chat`] that change the prompt.
    struct Tokenize;
    required {}
    optional {
        /// A text.
        prompt: String,
        /// A conversation.
        messages: Vec<Message>,
        /// Functions that the model may call.
        tools: Vec<Tool>,
        /// A Jinja template instead of the model's.
        chat_template: String,
        /// Variables for the template.
        template_args: Map<String, Value>,
        /// Whether to open the assistant's turn. None: true.
        add_generation_prompt: bool,
        /// Whether the answer would continue the last message.
        continue_final_message: bool,
        /// The start of the reply.
        prefix: String,
        /// "auto", "on" or "off".
        reasoning: String,
        /// How much the model would reason.
        reasoning_effort: String,
        /// Whether to return the count alone.
        count_only: bool,
        /// Whether to add the special tokens around a text. None: true.
        add_special_tokens: bool,
        /// Tokens to turn into text.
        token_ids: Vec<u64>,
    }
}

impl From<&str> for Tokenize {
    fn from(prompt: &str) -> Self {
        Self::default().prompt(prompt)
    }
}

params! {
    /// The parameters of [`Worker::embed`](crate::Worker::embed).
    struct Embed;
    required {
        /// Texts, tokens and images.
        input: Vec<Part>,
    }
    optional {
        /// Whether to scale vectors to length 1. None: true.
        normalize: bool,
        /// Number of the first numbers to return. None: all.
        dimensions: u64,
        /// "base64" or "float", on the wire only. None: base64, the faster one.
        encoding: String,
    }
}

impl Embed {
    /// Return the parameters for texts and images.
    pub fn new<I: Into<Part>>(input: impl IntoIterator<Item = I>) -> Self {
        Self { input: input.into_iter().map(Into::into).collect(), ..Self::default() }
    }
}

params! {
    /// The parameters of [`Worker::transcribe`](crate::Worker::transcribe).
    struct Transcribe;
    required {
        /// The recording.
        audio: Media,
    }
    optional {
        /// Such as "en". None: the model detects it.
        language: String,
        /// Earlier text, or names in their correct spelling.
        prompt: String,
        /// Randomness. None: greedy.
        temperature: f64,
        /// Whether to return each word's time as well.
        words: bool,
        /// Milliseconds after which the request ends with the text so far.
        timeout_ms: u64,
    }
}

impl Transcribe {
    /// Return the parameters for a recording.
    pub fn new(audio: Media) -> Self {
        Self { audio, ..Self::default() }
    }
}

params! {
    /// The parameters of [`Worker::speak`](crate::Worker::speak).
    struct Speak;
    required {
        /// The text.
        text: String,
    }
    optional {
        /// A voice of the model. None: its first one.
        voice: String,
        /// The language, by the model's own name for it. None: the model decides.
        language: String,
        /// A description of the voice or of the manner.
        instructions: String,
        /// 1 is the model's own.
        speed: f64,
        /// Maximum length of the speech, in seconds. None: 600.
        max_seconds: u64,
        /// The seed. None: random; the end of the speech has it.
        seed: u64,
        /// Milliseconds after which the request ends with the speech so far.
        timeout_ms: u64,
    }
}

impl Speak {
    /// Return the parameters for a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}

impl From<&str> for Speak {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}
