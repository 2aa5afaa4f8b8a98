package lmwire

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"

	"github.com/lmwire/lmwire/clients/go/internal/wire"
)

// newEvent returns an empty event of a kind, or nil for an unknown one. `done` and `error` are terminals, and not here.
func newEvent(kind string) any {
	switch kind {
	case "token":
		return &Token{}
	case "tool_call":
		return &ToolCallDelta{}
	case "progress":
		return &Progress{}
	case "embedding":
		return &embedding{}
	case "segment":
		return &Segment{}
	case "audio":
		return &AudioChunk{}
	default:
		return nil
	}
}

// newDone returns an empty `done` of a command.
func newDone(command string) any {
	switch command {
	case "hello":
		return &Hello{}
	case "load", "info":
		return &Model{}
	case "unload":
		return &unloadDone{}
	case "generate", "chat":
		return &Result{}
	case "tokenize":
		return &tokenizeDone{}
	case "embed":
		return &embedDone{}
	case "transcribe":
		return &TranscriptResult{}
	case "speak":
		return &SpeechResult{}
	case "cache":
		return &cacheDone{}
	case "cancel":
		return &cancelDone{}
	case "ping":
		return &PingReply{}
	case "stats":
		return &Stats{}
	case "quit":
		return &quitDone{}
	default:
		panic("lmwire: no command is named " + command)
	}
}

// bindEvent sets an event's fields, and replaces values that this version does not know.
func bindEvent(object map[string]any, event any) error {
	if err := wire.Bind(object, event); err != nil {
		return err
	}
	switch event := event.(type) {
	case *Token:
		if event.Channel == "" {
			event.Channel = Content
		}
	case *Progress:
		if event.Current < 0 || event.Total != nil && *event.Total < 0 {
			return errors.New("`current` and `total` must not be negative")
		}
	case *Result:
		event.FinishReason = event.FinishReason.known()
		for i := range event.Choices {
			event.Choices[i].FinishReason = event.Choices[i].FinishReason.known()
		}
	case *TranscriptResult:
		event.FinishReason = event.FinishReason.known()
	case *SpeechResult:
		event.FinishReason = event.FinishReason.known()
	case *embedding:
		return event.decode()
	case *AudioChunk:
		return event.decode()
	}
	return nil
}

var errVector = errors.New("`embedding` must be base64 of float32, or a list of numbers")

// decode sets the numbers of a part of a vector.
func (e *embedding) decode() error {
	switch value := e.Embedding.(type) {
	case string:
		data, err := base64.StdEncoding.DecodeString(value)
		if err != nil || len(data)%4 != 0 {
			return errVector
		}
		e.numbers = make([]float32, len(data)/4)
		for i := range e.numbers {
			e.numbers[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
		}
		return nil
	case []any:
		e.numbers = make([]float32, len(value))
		for i, item := range value {
			number, _ := item.(json.Number)
			float, err := number.Float64()
			if err != nil {
				return errVector
			}
			e.numbers[i] = float32(float)
		}
		return nil
	default:
		return errVector
	}
}

// decode sets the samples of a part of a speech.
func (c *AudioChunk) decode() error {
	data, err := base64.StdEncoding.DecodeString(c.Audio)
	if err != nil || len(data)%2 != 0 {
		return errors.New("`audio` must be base64 of samples of 16 bits")
	}
	c.Samples = make([]int16, len(data)/2)
	for i := range c.Samples {
		c.Samples[i] = int16(binary.LittleEndian.Uint16(data[2*i:]))
	}
	return nil
}
