package lmwire

import "encoding/json"

// Ptr returns a pointer to a value, for fields whose zero value has a meaning of its own. From Go 1.26 on, new(value)
// does the same.
func Ptr[T any](value T) *T { return &value }

// LoadParams are the fields of `load`. The zero value of a field leaves the choice to the worker.
type LoadParams struct {
	// Path is a folder, a hub id (owner/name) or an alias. Empty: the worker's default model.
	Path             string `json:"path,omitzero"`
	TrustRemoteCode  bool   `json:"trust_remote_code,omitzero"` // Allow code in the model's folder to run.
	AdapterPath      string `json:"adapter_path,omitzero"`      // A folder with a LoRA adapter.
	DraftPath        string `json:"draft_path,omitzero"`        // A smaller model, which proposes tokens.
	ChatTemplateName string `json:"chat_template_name,omitzero"`
	ToolFormat       string `json:"tool_format,omitzero"` // Name of the format of tool calls. Empty: found in the template.
	ContextLen       int64  `json:"context_len,omitzero"` // Maximum number of tokens of prompt and answer together.
	KVBits           int64  `json:"kv_bits,omitzero"`     // 4 or 8 bits of each cached key and value.
	DType            string `json:"dtype,omitzero"`       // float32, bfloat16 or float16. Empty: the worker's choice.
	Force            bool   `json:"force,omitzero"`       // Load even a model that does not seem to fit into memory.
	ReasoningStart   string `json:"reasoning_start,omitzero"`
	ReasoningEnd     string `json:"reasoning_end,omitzero"`
	GenerationConfig bool   `json:"generation_config,omitzero"` // Use the model's own sampling defaults.
}

// Generation has the fields that [ChatParams] and [GenerateParams] share. The zero value of a field is the protocol's
// default: a greedy answer without a limit.
type Generation struct {
	MaxTokens   *int64   `json:"max_tokens,omitzero"` // Nil: the rest of the context.
	MinTokens   int64    `json:"min_tokens,omitzero"` // Tokens before the model can end its turn.
	IgnoreEOS   bool     `json:"ignore_eos,omitzero"` // The model cannot end its turn.
	Temperature *float64 `json:"temperature,omitzero"`
	TopP        float64  `json:"top_p,omitzero"`
	TopK        *int64   `json:"top_k,omitzero"`
	MinP        *float64 `json:"min_p,omitzero"`
	// XTCProbability excludes the top choices: all tokens above XTCThreshold except the least probable of them.
	XTCProbability    float64  `json:"xtc_probability,omitzero"`
	XTCThreshold      *float64 `json:"xtc_threshold,omitzero"` // Nil: 0.1.
	RepetitionPenalty float64  `json:"repetition_penalty,omitzero"`
	PresencePenalty   float64  `json:"presence_penalty,omitzero"`
	FrequencyPenalty  float64  `json:"frequency_penalty,omitzero"`
	PenaltyWindow     *int64   `json:"penalty_window,omitzero"` // Newest tokens that penalties consider. Nil: 64. 0: all.
	// DryMultiplier is the strength of DRY, the penalty on tokens that would continue a repetition. 0: off.
	DryMultiplier    float64 `json:"dry_multiplier,omitzero"`
	DryBase          float64 `json:"dry_base,omitzero"`           // Factor for each further token. 0: 1.75.
	DryAllowedLength *int64  `json:"dry_allowed_length,omitzero"` // Tokens of an allowed repetition. Nil: 2.
	DryRange         int64   `json:"dry_range,omitzero"`          // Newest tokens that DRY considers. 0: all.
	// DrySequenceBreakers are strings across which no repetition reaches. Nil: the worker's four.
	DrySequenceBreakers []string `json:"dry_sequence_breakers,omitzero"`
	// BannedStrings are strings that the answer must not contain.
	BannedStrings []string `json:"banned_strings,omitzero"`
	// LogitBias has values to add to the logits of tokens.
	LogitBias   map[int64]float64 `json:"logit_bias,omitzero"`
	Seed        *int64            `json:"seed,omitzero"` // Nil: random; the result has it.
	Stop        []string          `json:"stop,omitzero"` // The answer ends before the first of these.
	IncludeStop bool              `json:"include_stop,omitzero"`
	Logprobs    bool              `json:"logprobs,omitzero"`
	TopLogprobs int64             `json:"top_logprobs,omitzero"` // At most 20. Needs Logprobs.
	N           int64             `json:"n,omitzero"`            // Number of answers, at most 16.
	Format      *Format           `json:"format,omitzero"`       // The form of the answer. Nil: free text.
	Truncate    string            `json:"truncate,omitzero"`     // Where to cut a long prompt: "left" or "middle".
	Cache       string            `json:"cache,omitzero"`        // "on", "off" or "pin".
	CacheReport bool              `json:"cache_report,omitzero"` // Report why tokens did not come from the cache.
	TimeoutMS   int64             `json:"timeout_ms,omitzero"`   // Then the request ends with the answer so far.
}

// GenerateParams are the fields of `generate`: exactly one of Prompt and TokenIDs, and those of [Generation].
type GenerateParams struct {
	Prompt   string  `json:"prompt"`
	TokenIDs []int64 `json:"-"`
	// Suffix is the text after a gap, which the answer fills. Prompt is the text before it; both may be empty. It needs a
	// model with the capability "suffix".
	Suffix       *string       `json:"suffix,omitzero"`
	ContextFiles []ContextFile `json:"context_files,omitzero"` // With Suffix: other files, the most relevant last.
	// PromptLogprobs asks for the log-probability of each token of the prompt, in [Token.PromptLogprobs].
	PromptLogprobs bool `json:"prompt_logprobs,omitzero"`
	Generation
}

// A ContextFile is another file of the project in which the model fills a gap, or a part of one.
type ContextFile struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// MarshalJSON returns the fields as the protocol has them, in which the prompt is a text or token ids.
func (p GenerateParams) MarshalJSON() ([]byte, error) {
	var prompt any = p.Prompt
	if p.TokenIDs != nil {
		prompt = p.TokenIDs
	}
	type fields GenerateParams
	return encode(struct {
		Prompt any `json:"prompt"` // hides that of the fields
		fields
	}{prompt, fields(p)})
}

// ChatParams are the fields of `chat`.
type ChatParams struct {
	Messages             []Message      `json:"messages"`
	Tools                []Tool         `json:"tools,omitzero"` // Functions that the model may call.
	ToolChoice           ToolChoice     `json:"tool_choice,omitzero"`
	ParallelToolCalls    *bool          `json:"parallel_tool_calls,omitzero"` // False: the answer ends after the first call.
	Reasoning            string         `json:"reasoning,omitzero"`           // "auto", "on" or "off".
	ReasoningEffort      string         `json:"reasoning_effort,omitzero"`    // "minimal" to "max": how much it reasons.
	ReasoningBudget      *int64         `json:"reasoning_budget,omitzero"`    // Maximum number of reasoning tokens.
	ChatTemplate         string         `json:"chat_template,omitzero"`       // A Jinja template instead of the model's.
	TemplateArgs         map[string]any `json:"template_args,omitzero"`
	AddGenerationPrompt  *bool          `json:"add_generation_prompt,omitzero"` // Open the assistant's turn. Nil: true.
	ContinueFinalMessage bool           `json:"continue_final_message,omitzero"`
	Prefix               string         `json:"prefix,omitzero"`       // The start of the reply, which is in no event.
	StrictMedia          bool           `json:"strict_media,omitzero"` // Refuse media that the model does not take.
	Generation
}

// TokenizeParams are the fields of `tokenize`: exactly one of Prompt, TokenIDs and Messages, and those of [ChatParams] that change
// the prompt.
type TokenizeParams struct {
	Prompt               *string        `json:"prompt,omitzero"`
	Messages             []Message      `json:"messages,omitzero"`
	Tools                []Tool         `json:"tools,omitzero"`
	ChatTemplate         string         `json:"chat_template,omitzero"`
	TemplateArgs         map[string]any `json:"template_args,omitzero"`
	AddGenerationPrompt  *bool          `json:"add_generation_prompt,omitzero"`
	ContinueFinalMessage bool           `json:"continue_final_message,omitzero"`
	Prefix               string         `json:"prefix,omitzero"`
	Reasoning            string         `json:"reasoning,omitzero"`
	ReasoningEffort      string         `json:"reasoning_effort,omitzero"`
	CountOnly            bool           `json:"count_only,omitzero"`         // Return the count alone.
	TokenIDs             []int64        `json:"token_ids,omitzero"`          // Tokens to turn into text, instead of a prompt.
	AddSpecialTokens     *bool          `json:"add_special_tokens,omitzero"` // Add those around a text. Nil: true.
}

// EmbedParams are the fields of `embed`.
type EmbedParams struct {
	Input      []Part `json:"input"`               // Texts, tokens and images; see [Texts].
	Normalize  *bool  `json:"normalize,omitzero"`  // Scale vectors to length 1. Nil: true.
	Dimensions int64  `json:"dimensions,omitzero"` // Keep this many of the first numbers. 0: all.
	Encoding   string `json:"encoding,omitzero"`   // "base64" or "float", on the wire only. Empty: base64, the faster one.
}

// TranscribeParams are the fields of `transcribe`.
type TranscribeParams struct {
	Audio       Media   `json:"audio"`
	Language    string  `json:"language,omitzero"` // Such as "en". Empty: the model detects it.
	Prompt      string  `json:"prompt,omitzero"`   // Earlier text, or names in their correct spelling.
	Temperature float64 `json:"temperature,omitzero"`
	Words       bool    `json:"words,omitzero"` // Report each word's time as well.
	TimeoutMS   int64   `json:"timeout_ms,omitzero"`
}

// SpeakParams are the fields of `speak`.
type SpeakParams struct {
	Text         string  `json:"text"`
	Voice        string  `json:"voice,omitzero"`        // A voice of the model. Empty: its first one.
	Language     string  `json:"language,omitzero"`     // By the model's own name for it. Empty: the model decides.
	Instructions string  `json:"instructions,omitzero"` // A description of the voice or of the manner.
	Speed        float64 `json:"speed,omitzero"`        // 1 is the model's own.
	MaxSeconds   int64   `json:"max_seconds,omitzero"`  // Maximum length of the speech. 0: 600.
	Seed         *int64  `json:"seed,omitzero"`         // Nil: random; the result has it.
	TimeoutMS    int64   `json:"timeout_ms,omitzero"`
}

type cacheParams struct {
	Action string `json:"action"`
}

type helloParams struct {
	Protocol [2]int64 `json:"protocol"`
	Client   string   `json:"client,omitzero"`
	HostPID  int64    `json:"host_pid,omitzero"`
}

type cancelParams struct {
	Target string `json:"target,omitzero"`
	All    bool   `json:"all,omitzero"`
}

type quitParams struct {
	Drain bool `json:"drain,omitzero"`
}

type noParams struct{}

// A Format is the form of an answer, which the worker enforces token by token. Make one with [JSONObject], [JSONSchema],
// [Regex], [Lark] or [OneOf].
type Format struct {
	Type    string   `json:"type"`
	Schema  any      `json:"schema,omitzero"`
	Pattern string   `json:"pattern,omitzero"`
	Grammar string   `json:"grammar,omitzero"`
	Choices []string `json:"choices,omitzero"`
}

// JSONObject returns the form of any JSON object.
func JSONObject() *Format { return &Format{Type: "json_object"} }

// JSONSchema returns the form of JSON that a JSON Schema accepts: a map, a [json.RawMessage] or any value of this JSON.
func JSONSchema(schema any) *Format { return &Format{Type: "json_schema", Schema: schema} }

// Regex returns the form of text that an expression in the syntax of Rust's regex crate matches as a whole.
func Regex(pattern string) *Format { return &Format{Type: "regex", Pattern: pattern} }

// Lark returns the form of text of a context-free grammar in llguidance's variant of Lark's syntax.
func Lark(grammar string) *Format { return &Format{Type: "lark", Grammar: grammar} }

// OneOf returns the form of one of several texts.
func OneOf(texts ...string) *Format { return &Format{Type: "choice", Choices: texts} }

// A Tool is a function that the model may call.
type Tool struct {
	Type     string   `json:"type,omitzero"` // "function", the only kind, or empty.
	Function Function `json:"function"`
}

// A Function describes a function to the model.
type Function struct {
	Name        string `json:"name"`
	Description string `json:"description,omitzero"`
	Parameters  any    `json:"parameters,omitzero"` // A JSON Schema of the arguments object. Nil: no arguments.
	Strict      bool   `json:"strict,omitzero"`     // Enforce the schema even if the model is free to call or not.
}

// A ToolChoice decides whether the model calls tools. The zero value lets the model decide.
type ToolChoice struct {
	Mode string // "auto", "none" or "required".
	Name string // The function that the model must call, instead of Mode.
}

// Choices about tools.
var (
	ToolChoiceNone     = ToolChoice{Mode: "none"}     // The model does not see the tools.
	ToolChoiceRequired = ToolChoice{Mode: "required"} // The model makes at least one call.
)

// MarshalJSON returns the mode, or an object with the name.
func (c ToolChoice) MarshalJSON() ([]byte, error) {
	if c.Name != "" {
		return encode(map[string]string{"name": c.Name})
	}
	return encode(c.Mode)
}

// UnmarshalJSON reads a mode, or an object with a name.
func (c *ToolChoice) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		return json.Unmarshal(data, &c.Mode)
	}
	named := struct{ Name *string }{&c.Name}
	return json.Unmarshal(data, &named)
}
