use serde::{Deserialize, Serialize};

use crate::event::{FinishReason, Segment, Timings, Usage, object};

/// The worker's reply to the host's greeting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    /// Version of the protocol.
    pub protocol: u64,
    /// Name and version.
    pub worker: String,
    /// The worker's process id, on its machine.
    pub pid: u64,
    /// Model libraries that it can use.
    pub engines: Vec<String>,
    /// Commands, fields and values newer than 1.0 that it serves.
    pub features: Vec<String>,
    /// Its limits.
    #[serde(deserialize_with = "object")]
    pub limits: Limits,
    /// The processes that hold each model together. None: one does.
    pub ranks: Option<RankGroup>,
}

/// The processes that hold each model together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankGroup {
    /// Number of processes.
    pub size: u64,
    /// What connects them, such as "ring" or "nccl".
    pub backend: String,
}

/// The limits of a worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Bytes of a request.
    pub line_in_bytes: u64,
    /// Bytes of an event.
    pub line_out_bytes: u64,
    /// Unfinished requests.
    pub requests: u64,
    /// Bytes of unfinished requests together.
    pub queued_bytes: u64,
}

/// The loaded model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// The folder that it was loaded from.
    pub path: String,
    /// The architecture.
    pub model_type: String,
    /// Number of tokens in the vocabulary.
    pub vocab_size: u64,
    /// Number of layers.
    pub layers: u64,
    /// Size of the hidden state.
    pub hidden_size: u64,
    /// Maximum number of tokens of prompt and answer together.
    pub context_len: u64,
    /// Size of the weights, in bytes.
    pub weights_bytes: u64,
    /// Commands that it serves, and "images" and "sounds".
    pub capabilities: Vec<String>,
    /// The weights' quantization.
    pub quantization: Option<Quantization>,
    /// The folder of the adapter.
    pub adapter_path: Option<String>,
    /// Name of the chat template. None: the model's default.
    pub chat_template_name: Option<String>,
    /// Name of the format of tool calls.
    pub tool_format: Option<String>,
    /// A sentence for a person, if the format is derived, or if prompts describe one.
    pub tool_format_note: Option<String>,
    /// Answers at once.
    pub batch_size: Option<u64>,
    /// The model's own defaults, with `generation_config` of [`Load`](crate::Load).
    pub sampling_defaults: Option<SamplingDefaults>,
    /// Values of `reasoning_effort` that the chat template takes. None: the model does not reason.
    pub reasoning_efforts: Option<Vec<String>>,
    /// The processes that hold the model together. None: one does.
    pub ranks: Option<Ranks>,
}

/// The processes that hold a model together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ranks {
    /// Number of processes.
    pub size: u64,
    /// What connects them, such as "ring" or "nccl".
    pub backend: String,
    /// "tensor": each has a part of every layer. "pipeline": each has a run of whole layers.
    pub split: String,
    /// Size of each one's part of the weights, in bytes.
    pub weights_bytes: Vec<u64>,
}

/// The quantization of a model's weights.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Quantization {
    /// Bits of a weight.
    pub bits: u64,
    /// Weights that share a scale.
    pub group_size: u64,
}

/// Sampling defaults of a model. None is the protocol's default.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct SamplingDefaults {
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    pub top_k: Option<u64>,
    pub min_p: Option<f64>,
    pub repetition_penalty: Option<f64>,
}

/// The state of a worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PingReply {
    /// Such as "idle", "loading", "running", "paused" or "draining".
    pub state: String,
    /// Milliseconds since the engine's last progress. None without work.
    pub step_age_ms: Option<f64>,
    /// Requests that the engine works on.
    pub active: u64,
    /// Requests that wait for the engine.
    pub queued: u64,
}

/// The counters of a worker since its start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stats {
    /// Milliseconds since the start.
    pub uptime_ms: f64,
    /// Requests by their end.
    #[serde(deserialize_with = "object")]
    pub requests: RequestStats,
    /// Tokens.
    #[serde(deserialize_with = "object")]
    pub tokens: TokenStats,
    /// The model library's memory.
    #[serde(deserialize_with = "object")]
    pub memory: MemoryStats,
    /// Bytes of output that wait for the host to read.
    pub outbox_bytes: u64,
    /// The cache of prompts since the model was loaded.
    pub cache: Option<CacheStats>,
}

/// Numbers of requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct RequestStats {
    pub accepted: u64,
    pub active: u64,
    pub queued: u64,
    pub done: u64,
    pub errors: u64,
    pub cancelled: u64,
}

/// Numbers of tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct TokenStats {
    pub prompt: u64,
    pub completion: u64,
}

/// The model library's memory, in bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemoryStats {
    /// In use.
    pub active_bytes: u64,
    /// Freed, and cached for reuse.
    pub cache_bytes: u64,
    /// Maximum in use.
    pub peak_bytes: u64,
}

/// The cache of prompts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct CacheStats {
    pub bytes: u64,
    pub budget_bytes: u64,
    pub entries: u64,
    pub hits: u64,
    pub misses: u64,
    pub saved_tokens: u64,
    pub evictions: u64,
    pub mismatches: u64,
}

/// The tokens of a prompt.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tokens {
    /// The tokens. Empty with `count_only`.
    pub ids: Vec<u64>,
    /// The prompt as the model receives it, the template's markers included.
    pub text: String,
    /// Number of tokens.
    pub count: u64,
}

/// The vectors of an embedding request.
#[derive(Debug, Clone, PartialEq)]
pub struct Embeddings {
    /// One for each input, in the inputs' order.
    pub vectors: Vec<Vec<f32>>,
    /// Numbers of tokens.
    pub usage: Usage,
}

/// The text of a recording.
#[derive(Debug, Clone, PartialEq)]
pub struct Transcript {
    /// The whole text.
    pub text: String,
    /// Its parts.
    pub segments: Vec<Segment>,
    /// The end of the transcription.
    pub end: TranscriptEnd,
}

/// The end of a transcription.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TranscriptEnd {
    /// The reason.
    pub finish_reason: FinishReason,
    /// Seconds of the recording.
    pub duration_s: f64,
    /// The language, such as "en".
    pub language: Option<String>,
    /// Milliseconds and rates.
    #[serde(deserialize_with = "object")]
    pub timings: Timings,
}

/// A spoken text.
#[derive(Debug, Clone, PartialEq)]
pub struct Speech {
    /// The samples, of one channel.
    pub samples: Vec<i16>,
    /// Samples per second. 0 if there are none.
    pub sample_rate: u32,
    /// The end of the speech.
    pub end: SpeechEnd,
}

/// The end of a speech.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SpeechEnd {
    /// The reason. [`FinishReason::Length`]: `max_seconds` was reached, or the model's own limit.
    pub finish_reason: FinishReason,
    /// Seconds of the speech.
    pub duration_s: f64,
    /// The seed in use.
    pub seed: u64,
    /// Milliseconds and rates.
    #[serde(deserialize_with = "object")]
    pub timings: Timings,
}
