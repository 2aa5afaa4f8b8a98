package lmwire

// Hello is the worker's reply to the host's greeting.
type Hello struct {
	Protocol int64      `json:"protocol"`
	Worker   string     `json:"worker"`   // Name and version.
	PID      int64      `json:"pid"`      // The worker's process id, on its machine.
	Engines  []string   `json:"engines"`  // Model libraries that it can use.
	Features []string   `json:"features"` // Commands, fields and values newer than 1.0 that it serves.
	Limits   Limits     `json:"limits"`
	Ranks    *RankGroup `json:"ranks,omitzero"` // Nil: one process holds each model.
}

// RankGroup is the processes that hold each model together.
type RankGroup struct {
	Size    int64  `json:"size"`
	Backend string `json:"backend"` // What connects them, such as "ring" or "nccl".
}

// Limits are those of a worker.
type Limits struct {
	LineInBytes  int64 `json:"line_in_bytes"`  // Bytes of a request.
	LineOutBytes int64 `json:"line_out_bytes"` // Bytes of an event.
	Requests     int64 `json:"requests"`       // Unfinished requests.
	QueuedBytes  int64 `json:"queued_bytes"`   // Bytes of unfinished requests together.
}

// A Model describes the loaded model.
type Model struct {
	Path             string        `json:"path"` // The folder that it was loaded from.
	ModelType        string        `json:"model_type"`
	VocabSize        int64         `json:"vocab_size"`
	Layers           int64         `json:"layers"`
	HiddenSize       int64         `json:"hidden_size"`
	ContextLen       int64         `json:"context_len"` // Maximum number of tokens of prompt and answer together.
	WeightsBytes     int64         `json:"weights_bytes"`
	Capabilities     []string      `json:"capabilities"` // Commands that it serves, and "images" and "sounds".
	Quantization     *Quantization `json:"quantization,omitzero"`
	AdapterPath      string        `json:"adapter_path,omitzero"`
	ChatTemplateName string        `json:"chat_template_name,omitzero"` // Empty: the model's default.
	ToolFormat       string        `json:"tool_format,omitzero"`        // Name of the format of tool calls.
	// ToolFormatNote is a sentence for a person if the format is derived, or if prompts describe one.
	ToolFormatNote   string            `json:"tool_format_note,omitzero"`
	BatchSize        int64             `json:"batch_size,omitzero"`        // Answers at once. 0: unknown.
	SamplingDefaults *SamplingDefaults `json:"sampling_defaults,omitzero"` // With LoadParams.GenerationConfig.
	ReasoningEfforts []string          `json:"reasoning_efforts,omitzero"` // Nil: the model does not reason.
	Ranks            *Ranks            `json:"ranks,omitzero"`             // Nil: one process holds the model.
}

// Ranks are the processes that hold a model together.
type Ranks struct {
	Size         int64   `json:"size"`
	Backend      string  `json:"backend"`       // What connects them, such as "ring" or "nccl".
	Split        string  `json:"split"`         // "tensor": a part of every layer. "pipeline": a run of whole layers.
	WeightsBytes []int64 `json:"weights_bytes"` // Size of each one's part of the weights.
}

// Quantization describes the weights of a quantised model.
type Quantization struct {
	Bits      int64 `json:"bits"`
	GroupSize int64 `json:"group_size"`
}

// SamplingDefaults are those of the model. Nil is the protocol's default.
type SamplingDefaults struct {
	Temperature       *float64 `json:"temperature,omitzero"`
	TopP              *float64 `json:"top_p,omitzero"`
	TopK              *int64   `json:"top_k,omitzero"`
	MinP              *float64 `json:"min_p,omitzero"`
	RepetitionPenalty *float64 `json:"repetition_penalty,omitzero"`
}

// PingReply is the state of the worker.
type PingReply struct {
	State     string   `json:"state"`                // "idle", "loading", "running", "paused" or "draining".
	StepAgeMS *float64 `json:"step_age_ms,omitzero"` // Milliseconds since the engine's last progress. Nil without work.
	Active    int64    `json:"active"`               // Requests that the engine works on.
	Queued    int64    `json:"queued"`               // Requests that wait for the engine.
}

// Stats are the worker's counters since its start.
type Stats struct {
	UptimeMS    float64      `json:"uptime_ms"`
	Requests    RequestStats `json:"requests"`
	Tokens      TokenStats   `json:"tokens"`
	Memory      MemoryStats  `json:"memory"`
	OutboxBytes int64        `json:"outbox_bytes"`   // Bytes of output that wait for the host to read.
	Cache       *CacheStats  `json:"cache,omitzero"` // Since the model was loaded.
}

// RequestStats count requests.
type RequestStats struct {
	Accepted  int64 `json:"accepted"`
	Active    int64 `json:"active"`
	Queued    int64 `json:"queued"`
	Done      int64 `json:"done"`
	Errors    int64 `json:"errors"`
	Cancelled int64 `json:"cancelled"`
}

// TokenStats count tokens.
type TokenStats struct {
	Prompt     int64 `json:"prompt"`
	Completion int64 `json:"completion"`
}

// MemoryStats has the model library's memory, in bytes.
type MemoryStats struct {
	ActiveBytes int64 `json:"active_bytes"` // In use.
	CacheBytes  int64 `json:"cache_bytes"`  // Freed, and kept for reuse.
	PeakBytes   int64 `json:"peak_bytes"`   // Maximum in use.
}

// CacheStats describe the cache of prompts.
type CacheStats struct {
	Bytes       int64 `json:"bytes"`
	BudgetBytes int64 `json:"budget_bytes"`
	Entries     int64 `json:"entries"`
	Hits        int64 `json:"hits"`
	Misses      int64 `json:"misses"`
	SavedTokens int64 `json:"saved_tokens"`
	Evictions   int64 `json:"evictions"`
	Mismatches  int64 `json:"mismatches"`
}

// TranscriptResult is the end of a transcription.
type TranscriptResult struct {
	FinishReason FinishReason `json:"finish_reason"` // FinishStop, FinishCancelled, FinishTimeout or FinishOther.
	DurationS    float64      `json:"duration_s"`    // Seconds of the recording.
	Language     string       `json:"language,omitzero"`
	Timings      Timings      `json:"timings"`
}

// SpeechResult is the end of a speech.
type SpeechResult struct {
	FinishReason FinishReason `json:"finish_reason"` // FinishLength: MaxSeconds was reached, or the model's own limit.
	DurationS    float64      `json:"duration_s"`    // Seconds of the speech.
	Seed         int64        `json:"seed"`          // The seed in use.
	Timings      Timings      `json:"timings"`
}

type (
	unloadDone struct {
		FreedBytes int64 `json:"freed_bytes"`
	}
	cacheDone struct {
		FreedBytes int64 `json:"freed_bytes"`
	}
	tokenizeDone struct {
		Count int64 `json:"count"`
	}
	cancelDone struct {
		Matched int64 `json:"matched"`
	}
	quitDone  struct{}
	embedDone struct {
		Count      int   `json:"count"`
		Dimensions int   `json:"dimensions"`
		Usage      Usage `json:"usage"`
	}
)
