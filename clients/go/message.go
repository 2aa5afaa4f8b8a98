package lmwire

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
)

// A Role is that of the speaker.
type Role string

// The roles of messages.
const (
	System    Role = "system"
	Developer Role = "developer" // The same as System.
	User      Role = "user"
	Assistant Role = "assistant"
	ToolRole  Role = "tool" // Carries the result of a call.
)

// A Message is a turn of a conversation.
type Message struct {
	Role       Role       `json:"role"`
	Content    string     `json:"content,omitzero"` // Text, if Parts is nil.
	Parts      []Part     `json:"-"`                // Texts, images and sounds, instead of Content.
	Reasoning  string     `json:"reasoning,omitzero"`
	ToolCalls  []ToolCall `json:"tool_calls,omitzero"` // The calls of an assistant's message.
	ToolCallID string     `json:"tool_call_id,omitzero"`
	Name       string     `json:"name,omitzero"` // In a tool's message: the function; in others: the speaker.
}

// SystemMessage returns instructions for the model.
func SystemMessage(text string) Message { return Message{Role: System, Content: text} }

// UserMessage returns a user's message.
func UserMessage(text string) Message { return Message{Role: User, Content: text} }

// AssistantMessage returns an earlier answer of the model.
func AssistantMessage(text string) Message { return Message{Role: Assistant, Content: text} }

// message is Message without its methods.
type message Message

type wireMessage struct {
	message
	Content any `json:"content,omitzero"` // hides message's
}

// MarshalJSON returns the message as the protocol has it, in which the content is a text or a list of parts.
func (m Message) MarshalJSON() ([]byte, error) {
	wire := wireMessage{message: message(m)}
	switch {
	case m.Parts != nil:
		wire.Content = m.Parts
	case m.Content != "" || len(m.ToolCalls) == 0:
		wire.Content = m.Content
	}
	return encode(wire)
}

// UnmarshalJSON reads a message that [Message.MarshalJSON] wrote.
func (m *Message) UnmarshalJSON(data []byte) error {
	var wire struct {
		*message
		Content json.RawMessage `json:"content"`
	}
	*m = Message{}
	wire.message = (*message)(m)
	if err := json.Unmarshal(data, &wire); err != nil {
		return err
	}
	switch content := bytes.TrimSpace(wire.Content); {
	case len(content) == 0:
		return nil
	case content[0] == '[':
		return json.Unmarshal(content, &m.Parts)
	default:
		return json.Unmarshal(content, &m.Content)
	}
}

// A Part is a text, an image or a sound of a message, or an input of [Worker.Embed].
type Part struct {
	Type     string  `json:"type"` // "text", "image", "audio" or, for [Worker.Embed], "tokens".
	Text     string  `json:"text,omitzero"`
	Media    *Media  `json:"media,omitzero"`
	TokenIDs []int64 `json:"token_ids,omitzero"` // For "tokens": those of the model's vocabulary.
}

// MarshalJSON returns the part. A part of the type "text" always has its text.
func (p Part) MarshalJSON() ([]byte, error) {
	if p.Type == "text" {
		return encode(struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}{p.Type, p.Text})
	}
	type plain Part
	return encode(plain(p))
}

// Media is an image or a sound. Exactly one of the fields is set. The operator of the worker decides which files and
// addresses it may read; Data always works.
type Media struct {
	Data string `json:"data,omitzero"` // Base64, or a data URI.
	Path string `json:"path,omitzero"` // A file on the worker's machine.
	URL  string `json:"url,omitzero"`
}

// MediaData returns media with the bytes of a file, such as a PNG or a WAV.
func MediaData(file []byte) Media { return Media{Data: base64.StdEncoding.EncodeToString(file)} }

// TextPart returns a text.
func TextPart(text string) Part { return Part{Type: "text", Text: text} }

// ImagePart returns an image.
func ImagePart(image Media) Part { return Part{Type: "image", Media: &image} }

// AudioPart returns a sound.
func AudioPart(sound Media) Part { return Part{Type: "audio", Media: &sound} }

// TokensPart returns the tokens of a text as an input of [Worker.Embed].
func TokensPart(tokens []int64) Part { return Part{Type: "tokens", TokenIDs: tokens} }

// Texts returns the texts as inputs of [Worker.Embed].
func Texts(texts ...string) []Part {
	parts := make([]Part, len(texts))
	for i, text := range texts {
		parts[i] = TextPart(text)
	}
	return parts
}

// A ToolCall is a call of a function that the model asks for.
type ToolCall struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"` // A JSON object. Check it against your schema before you use it.
}

// Result returns a message with the call's result, to send to the model next.
func (c ToolCall) Result(content string) Message {
	return Message{Role: ToolRole, ToolCallID: c.ID, Name: c.Name, Content: content}
}

// encode returns JSON in which <, > and & are as they are.
func encode(value any) ([]byte, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buffer.Bytes(), []byte("\n")), nil
}
