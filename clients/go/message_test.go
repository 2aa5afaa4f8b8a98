package lmwire

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
)

func TestMessagesAreWrittenAndReadAgain(t *testing.T) {
	call := ToolCall{ID: "c1", Name: "look_up", Arguments: json.RawMessage(`{"city":"Rome"}`)}
	for _, entry := range []struct {
		message Message
		want    string
	}{
		{UserMessage("<Hi>"), `{"role":"user","content":"<Hi>"}`},
		{AssistantMessage(""), `{"role":"assistant","content":""}`},
		{Message{Role: Assistant, Reasoning: "Hm.", ToolCalls: []ToolCall{call}},
			`{"role":"assistant","reasoning":"Hm.","tool_calls":[{"id":"c1","name":"look_up","arguments":{"city":"Rome"}}]}`},
		{call.Result("30 degrees"), `{"role":"tool","tool_call_id":"c1","name":"look_up","content":"30 degrees"}`},
		{Message{Role: User, Parts: []Part{TextPart(""), ImagePart(MediaData([]byte("PNG"))), AudioPart(Media{Path: "/a.wav"})}},
			`{"role":"user","content":[{"type":"text","text":""},{"type":"image","media":{"data":"UE5H"}},{"type":"audio","media":{"path":"/a.wav"}}]}`},
	} {
		written, err := encode(entry.message)
		if err != nil {
			t.Fatal(err)
		}
		if !sameJSON(t, string(written), entry.want) {
			t.Errorf("%s, not %s", written, entry.want)
		}
		var again Message
		if err := json.Unmarshal(written, &again); err != nil || !reflect.DeepEqual(again, entry.message) {
			t.Errorf("%v: %+v, not %+v", err, again, entry.message)
		}
	}
}

func sameJSON(t *testing.T, one, other string) bool {
	t.Helper()
	var a, b any
	if err := json.Unmarshal([]byte(one), &a); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(other), &b); err != nil {
		t.Fatal(err)
	}
	return reflect.DeepEqual(a, b)
}

func TestTheZeroValueOfAFieldIsNotSent(t *testing.T) {
	for want, params := range map[string]any{
		`{"messages":[{"role":"user","content":"Hi"}]}`: chat("Hi"),
		`{"prompt":"Once"}`:                             GenerateParams{Prompt: "Once"},
		`{"prompt":"a","suffix":"","context_files":[{"name":"b","text":"c"}],"n":2}`: GenerateParams{Prompt: "a", Suffix: Ptr(""), ContextFiles: []ContextFile{{"b", "c"}}, Generation: Generation{N: 2}},
		`{"prompt":[1,2]}`: GenerateParams{TokenIDs: []int64{1, 2}},
		`{"prompt":"","max_tokens":0,"temperature":0,"top_k":0}`: GenerateParams{Generation: Generation{MaxTokens: Ptr[int64](0), Temperature: Ptr(0.0), TopK: Ptr[int64](0)}},
		`{}`: LoadParams{},
		`{"input":[{"type":"text","text":"a"}],"normalize":false}`:    EmbedParams{Input: Texts("a"), Normalize: Ptr(false)},
		`{"input":[{"type":"tokens","token_ids":[1,2]}]}`:             EmbedParams{Input: []Part{TokensPart([]int64{1, 2})}},
		`{"messages":null,"tool_choice":{"name":"f"}}`:                ChatParams{ToolChoice: ToolChoice{Name: "f"}},
		`{"messages":null,"tool_choice":"required"}`:                  ChatParams{ToolChoice: ToolChoiceRequired},
		`{"prompt":"","format":{"type":"choice","choices":["a"]}}`:    GenerateParams{Generation: Generation{Format: OneOf("a")}},
		`{"prompt":"","format":{"type":"regex","pattern":"a<b"}}`:     GenerateParams{Generation: Generation{Format: Regex("a<b")}},
		`{"prompt":"","format":{"type":"lark","grammar":"start: X"}}`: GenerateParams{Generation: Generation{Format: Lark("start: X")}},
		`{"prompt":"","format":{"type":"json_object"}}`:               GenerateParams{Generation: Generation{Format: JSONObject()}},
		`{"prompt":"","logit_bias":{"5":-1.5},"stop":["\n"],"n":2}`:   GenerateParams{Generation: Generation{LogitBias: map[int64]float64{5: -1.5}, Stop: []string{"\n"}, N: 2}},
		`{"audio":{"url":"https://example.org/a.mp3"},"words":true}`:  TranscribeParams{Audio: Media{URL: "https://example.org/a.mp3"}, Words: true},
	} {
		written, err := encode(params)
		if err != nil || !sameJSON(t, string(written), want) {
			t.Errorf("%v: %s, not %s", err, written, want)
		}
	}
}

func TestALineHasItsIDFirst(t *testing.T) {
	if line := string(commandLine("7", "load", []byte(`{"path":"x"}`))); line != `{"id":"7","cmd":"load","path":"x"}`+"\n" {
		t.Error(line)
	}
	if line := string(commandLine("8", "ping", []byte(`{}`))); line != `{"id":"8","cmd":"ping"}`+"\n" {
		t.Error(line)
	}
}

func TestOnlyListedFeaturesAreSent(t *testing.T) {
	developer := ChatParams{Messages: []Message{{Role: Developer, Content: "Be brief."}}}
	image := ChatParams{Messages: []Message{{Role: User, Parts: []Part{ImagePart(Media{Path: "/a.png"})}}}}
	unanswered := ChatParams{Messages: []Message{{Role: ToolRole, Content: "9"}}}
	arguments := ChatParams{Messages: []Message{{Role: Assistant, ToolCalls: []ToolCall{{ID: "1", Name: "f", Arguments: json.RawMessage(`{"function":{"name":"x"},"type":"function"}`)}}}}}
	for _, entry := range []struct {
		command string
		params  any
		listed  []string
		missing []string
	}{
		{"chat", chat("Hi"), nil, nil},
		{"load", LoadParams{Path: "x"}, nil, nil},
		{"load", LoadParams{}, nil, []string{"load.path.absent"}},
		{"load", LoadParams{}, []string{"load.path.absent"}, nil},
		{"tokenize", TokenizeParams{Prompt: Ptr("x")}, nil, []string{"tokenize"}},
		{"tokenize", TokenizeParams{Prompt: Ptr("x"), Reasoning: "on"}, []string{"tokenize"}, []string{"tokenize.reasoning"}},
		{"tokenize", TokenizeParams{Messages: developer.Messages}, []string{"tokenize"}, nil},
		{"chat", developer, nil, []string{"chat.messages.role.developer"}},
		{"chat", image, []string{"chat.messages.content.audio"}, []string{"chat.messages.content.image"}},
		{"chat", image, []string{"chat.messages.content.image"}, nil},
		{"chat", unanswered, []string{"chat.messages.role.tool"}, []string{"chat.messages.tool_call_id.absent"}},
		{"chat", arguments, []string{"chat.messages.tool_calls"}, nil},
		{"generate", GenerateParams{Generation: Generation{N: 2, Logprobs: true}}, []string{"chat.n"}, []string{"generate.logprobs", "generate.n"}},
		{"generate", GenerateParams{Generation: Generation{LogitBias: map[int64]float64{1: 1}}}, nil, []string{"generate.logit_bias"}},
	} {
		fields, err := encode(entry.params)
		if err != nil {
			t.Fatal(err)
		}
		if missing := newFeatureSet(entry.listed).missing(entry.command, fields); !slices.Equal(missing, entry.missing) {
			t.Errorf("%s %s: the missing features are %q, not %q", entry.command, fields, missing, entry.missing)
		}
	}
}

func TestAWorkerThatServesAllOfACommandNeedsNoCheck(t *testing.T) {
	features := []string{"transcribe"}
	if set := newFeatureSet(features); !set.whole["transcribe"] || set.whole["chat"] || set.whole["load"] {
		t.Errorf("everything is served of %v", set.whole)
	}
}
