package lmwire

import (
	"context"
	"fmt"
	"iter"
	"strings"
)

// Embeddings are the vectors of an embedding request.
type Embeddings struct {
	Vectors [][]float32 // One for each input, in the inputs' order.
	Usage   Usage
}

// Embed turns each input into a vector whose direction represents its meaning.
func (w *Worker) Embed(ctx context.Context, params EmbedParams, options ...RequestOption) (*Embeddings, error) {
	vectors := make([][]float32, len(params.Input))
	dims := make([]int, len(params.Input))
	done, err := call[embedDone](ctx, w, "embed", params, options, func(event any) error {
		part, ok := event.(*embedding)
		if !ok {
			return nil
		}
		if part.Index < 0 || part.Index >= len(vectors) || part.Offset != len(vectors[part.Index]) ||
			part.Offset+len(part.numbers) > part.Dims {
			return fmt.Errorf("lmwire: the worker sent a wrong part of vector %d", part.Index)
		}
		vectors[part.Index] = append(vectors[part.Index], part.numbers...)
		dims[part.Index] = part.Dims
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i, vector := range vectors {
		if len(vector) == 0 || len(vector) != dims[i] {
			return nil, fmt.Errorf("lmwire: the worker did not send all of vector %d", i)
		}
	}
	return &Embeddings{Vectors: vectors, Usage: done.Usage}, nil
}

// A Transcript is the text of a recording.
type Transcript struct {
	Text     string
	Segments []Segment
	TranscriptResult
}

// Transcribe turns a recording into text. [WithProgress] reports how far it has come.
func (w *Worker) Transcribe(ctx context.Context, params TranscribeParams, options ...RequestOption) (*Transcript, error) {
	var segments []Segment
	var text strings.Builder
	done, err := call[TranscriptResult](ctx, w, "transcribe", params, options, func(event any) error {
		if segment, ok := event.(*Segment); ok {
			segments = append(segments, *segment)
			text.WriteString(segment.Text)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &Transcript{Text: text.String(), Segments: segments, TranscriptResult: *done}, nil
}

// Segments turns a recording into text, and yields each part of it as it is written.
func (w *Worker) Segments(ctx context.Context, params TranscribeParams, options ...RequestOption) iter.Seq2[*Segment, error] {
	return parts[Segment](w.events(ctx, "transcribe", params, options))
}

// parts yields the events of one type.
func parts[Part any](events iter.Seq2[any, error]) iter.Seq2[*Part, error] {
	return func(yield func(*Part, error) bool) {
		for event, err := range events {
			if err != nil {
				yield(nil, err)
				return
			}
			if part, ok := event.(*Part); ok && !yield(part, nil) {
				return
			}
		}
	}
}

// A Speech is a spoken text.
type Speech struct {
	Samples    []int16 // Of one channel.
	SampleRate int     // Samples per second. 0 if there are none.
	SpeechResult
}

// Speak speaks a text.
func (w *Worker) Speak(ctx context.Context, params SpeakParams, options ...RequestOption) (*Speech, error) {
	var speech Speech
	done, err := call[SpeechResult](ctx, w, "speak", params, options, func(event any) error {
		if chunk, ok := event.(*AudioChunk); ok {
			speech.SampleRate = chunk.SampleRate
			speech.Samples = append(speech.Samples, chunk.Samples...)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	speech.SpeechResult = *done
	return &speech, nil
}

// AudioChunks speaks a text, and yields each part of the speech as it is made.
func (w *Worker) AudioChunks(ctx context.Context, params SpeakParams, options ...RequestOption) iter.Seq2[*AudioChunk, error] {
	return parts[AudioChunk](w.events(ctx, "speak", params, options))
}
