package lmwire

import (
	"slices"
	"testing"
)

func TestARecordingIsTranscribed(t *testing.T) {
	t.Parallel()
	worker := startScenario(t, map[string]any{"match": map[string]any{"audio": "note"}, "reply": map[string]any{
		"progress": []any{map[string]any{"stage": "transcribe", "current": 0, "total": 5, "unit": "seconds", "delay_ms": 100}},
		"text":     "Buy milk. And bread."}})
	params := TranscribeParams{Audio: Media{Path: "/tmp/note.wav"}, Words: true}
	var stages []string
	transcript, err := worker.Transcribe(within(t), params, WithProgress(func(p Progress) { stages = append(stages, p.Stage) }))
	if err != nil {
		t.Fatal(err)
	}
	if transcript.Text != "Buy milk. And bread." || len(transcript.Segments) != 2 || len(transcript.Segments[0].Words) != 2 {
		t.Errorf("%+v", transcript)
	}
	if transcript.FinishReason != FinishStop || !slices.Contains(stages, "transcribe") {
		t.Errorf("%s after %v", transcript.FinishReason, stages)
	}
	for segment, err := range worker.Segments(within(t), params) {
		if err != nil || segment.Text != "Buy milk. " {
			t.Errorf("%v: %+v", err, segment)
		}
		break
	}
}

func TestATextIsSpoken(t *testing.T) {
	t.Parallel()
	worker := startMock(t)
	params := SpeakParams{Text: "Buy milk", Seed: Ptr[int64](7)}
	speech, err := worker.Speak(within(t), params)
	if err != nil {
		t.Fatal(err)
	}
	seconds := float64(len(speech.Samples)) / float64(speech.SampleRate)
	if speech.SampleRate != 8000 || seconds != speech.DurationS || slices.Max(speech.Samples) == 0 {
		t.Errorf("%d samples at %d a second: %+v", len(speech.Samples), speech.SampleRate, speech.SpeechResult)
	}
	if speech.FinishReason != FinishStop || speech.Seed != 7 {
		t.Errorf("%+v", speech.SpeechResult)
	}
	for chunk, err := range worker.AudioChunks(within(t), params) {
		if err != nil || chunk.Index != 0 || !slices.Equal(chunk.Samples, speech.Samples[:len(chunk.Samples)]) {
			t.Errorf("%v: %+v", err, chunk)
		}
		break
	}
}
