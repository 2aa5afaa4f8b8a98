package lmwire

import (
	"slices"
	"testing"
)

func TestInputsAreEmbeddedInTheirOrder(t *testing.T) {
	t.Parallel()
	worker := startScenario(t,
		map[string]any{"match": map[string]any{"input": "sea"}, "reply": map[string]any{"vectors": [][]float64{{1, 0.5}, {0, -1}}}})
	for _, encoding := range []string{"", "float"} {
		embeddings, err := worker.Embed(within(t), EmbedParams{Input: Texts("the sea", "a car"), Normalize: Ptr(false), Encoding: encoding})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(embeddings.Vectors[0], []float32{1, 0.5}) || !slices.Equal(embeddings.Vectors[1], []float32{0, -1}) {
			t.Errorf("the vectors are %v", embeddings.Vectors)
		}
		if embeddings.Usage.PromptTokens == 0 {
			t.Errorf("the usage is %+v", embeddings.Usage)
		}
	}
}

func TestALongVectorComesInParts(t *testing.T) {
	t.Parallel()
	vector := make([]float64, 5000)
	for i := range vector {
		vector[i] = float64(i)
	}
	worker := startScenario(t, map[string]any{"match": map[string]any{"cmd": "embed"}, "reply": map[string]any{"vectors": [][]float64{vector}}})
	embeddings, err := worker.Embed(within(t), EmbedParams{Input: Texts("x"), Normalize: Ptr(false)})
	if err != nil || len(embeddings.Vectors[0]) != 5000 || embeddings.Vectors[0][4999] != 4999 {
		t.Errorf("%v: %d numbers", err, len(embeddings.Vectors[0]))
	}
}
