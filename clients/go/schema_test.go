package lmwire

import (
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite features.json from the protocol's schema")

const protocolFolder = "../../protocol"

// readJSON returns a file of the protocol. The module's archive does not contain it: there the test is skipped.
func readJSON[T any](t *testing.T, path string) (value T) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(protocolFolder, path))
	if os.IsNotExist(err) {
		t.Skip("the protocol's files are not beside this module")
	}
	if err == nil {
		err = json.Unmarshal(data, &value)
	}
	if err != nil {
		t.Fatal(err)
	}
	return value
}

type schemaDefinition struct {
	Type       string                       `json:"type"`
	Properties map[string]*schemaDefinition `json:"properties"`
	Required   []string                     `json:"required"`
	Enum       []any                        `json:"enum"`
}

// typesOfTheProtocol has the Go type of each definition of the schema that is an object.
var typesOfTheProtocol = map[string]any{
	"Hello": helloParams{}, "Load": LoadParams{}, "Unload": noParams{}, "Info": noParams{}, "Generate": GenerateParams{},
	"Chat": ChatParams{}, "Tokenize": TokenizeParams{}, "Embed": EmbedParams{}, "Transcribe": TranscribeParams{},
	"Speak": SpeakParams{}, "Cache": cacheParams{}, "Cancel": cancelParams{}, "Ping": noParams{}, "Stats": noParams{}, "Quit": quitParams{},

	"Token": Token{}, "ToolCall": ToolCallDelta{}, "Progress": Progress{}, "Embedding": embedding{}, "Segment": Segment{},
	"Error": RequestError{}, "HelloDone": Hello{}, "ModelDone": Model{}, "UnloadDone": unloadDone{}, "ResultDone": Result{},
	"TokenizeDone": tokenizeDone{}, "EmbedDone": embedDone{}, "TranscribeDone": TranscriptResult{}, "Audio": AudioChunk{}, "SpeakDone": SpeechResult{}, "CacheDone": cacheDone{},
	"CancelDone": cancelDone{}, "PingDone": PingReply{}, "StatsDone": Stats{}, "QuitDone": quitDone{},

	"Message": Message{}, "ContextFile": ContextFile{}, "Tool": Tool{}, "Function": Function{}, "CalledTool": ToolCall{}, "Media": Media{},
	"TextPart": Part{}, "ImagePart": Part{}, "AudioPart": Part{}, "TokensPart": Part{},
	"JsonObjectFormat": Format{}, "JsonSchemaFormat": Format{}, "RegexFormat": Format{}, "LarkFormat": Format{},
	"ChoiceFormat": Format{}, "NamedTool": struct {
		Name string `json:"name"`
	}{},
	"TopLogprob": TopLogprob{}, "Logprob": Logprob{}, "Usage": Usage{}, "Timings": Timings{}, "Choice": Choice{}, "CacheMiss": CacheMiss{},
	"Word": Word{}, "Quantization": Quantization{}, "RankGroup": RankGroup{}, "RankInfo": Ranks{}, "SamplingDefaults": SamplingDefaults{}, "Limits": Limits{},
	"RequestStats": RequestStats{}, "TokenStats": TokenStats{}, "MemoryStats": MemoryStats{}, "CacheStats": CacheStats{},
}

// otherShapes are OpenAI's shapes of what this package sends in the protocol's own shape.
var otherShapes = []string{"ImageUrl", "ImageUrlPart", "CalledFunction", "ChosenFunction"}

var otherFields = map[string][]string{"CalledTool": {"type", "function"}, "NamedTool": {"type", "function"}}

// unions are types that stand for several definitions. Their fields together are those of the definitions.
var unions = map[reflect.Type]bool{reflect.TypeFor[Part](): true, reflect.TypeFor[Format](): true}

func TestEveryFieldOfTheProtocolHasAGoField(t *testing.T) {
	schema := readJSON[struct {
		Defs map[string]*schemaDefinition `json:"$defs"`
	}](t, "schema/v1/schema.json")
	for name, definition := range schema.Defs {
		if definition.Properties == nil || slices.Contains(otherShapes, name) {
			continue
		}
		value, ok := typesOfTheProtocol[name]
		if !ok {
			t.Errorf("no Go type stands for %s", name)
			continue
		}
		_, isEvent := definition.Properties["event"]
		fields := fieldsOf(reflect.TypeOf(value))
		for field, property := range definition.Properties {
			if slices.Contains([]string{"id", "cmd", "event"}, field) && name != "CalledTool" || slices.Contains(otherFields[name], field) {
				continue
			}
			found, ok := fields[field]
			if !ok {
				t.Errorf("%v has no field for %s.%s", reflect.TypeOf(value), name, field)
				continue
			}
			delete(fields, field)
			if !fits(property, found.Type) {
				t.Errorf("%s.%s: %v does not fit %+v", name, field, found.Type, *property)
			}
			optional := strings.Contains(found.Tag.Get("json"), ",omitzero")
			if isEvent && optional == slices.Contains(definition.Required, field) {
				t.Errorf("%s.%s: a required field has no omitzero, and an optional one has it", name, field)
			}
		}
		if len(fields) > 0 && !unions[reflect.TypeOf(value)] {
			t.Errorf("%s lacks %v of %v", name, slices.Collect(maps.Keys(fields)), reflect.TypeOf(value))
		}
	}
}

// fieldsOf returns the fields of a struct by their names in JSON.
func fieldsOf(of reflect.Type) map[string]reflect.StructField {
	fields := map[string]reflect.StructField{}
	for _, field := range reflect.VisibleFields(of) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name != "" && name != "-" {
			fields[name] = field
		}
	}
	return fields
}

// fits returns whether a Go type holds the values of a property.
func fits(property *schemaDefinition, goType reflect.Type) bool {
	if goType.Kind() == reflect.Pointer {
		goType = goType.Elem()
	}
	kinds := map[string][]reflect.Kind{
		"string":  {reflect.String},
		"integer": {reflect.Int, reflect.Int64},
		"number":  {reflect.Float64},
		"boolean": {reflect.Bool},
		"array":   {reflect.Slice, reflect.Array},
		"object":  {reflect.Struct, reflect.Map, reflect.Interface},
	}[property.Type]
	return kinds == nil || slices.Contains(kinds, goType.Kind())
}

func TestEveryCommandAndEventIsKnown(t *testing.T) {
	meta := readJSON[struct {
		Commands map[string]struct{ Done string }
		Events   map[string]any
		Errors   map[string]any
	}](t, "schema/v1/meta.json")
	for name, command := range meta.Commands {
		if got, want := reflect.TypeOf(newDone(name)).Elem(), reflect.TypeOf(typesOfTheProtocol[command.Done]); got != want {
			t.Errorf("the `done` of %s is %v, not %v", name, got, want)
		}
	}
	for kind := range meta.Events {
		if kind != "done" && kind != "error" && newEvent(kind) == nil {
			t.Errorf("the event %s is not known", kind)
		}
	}
	source, err := os.ReadFile("errors.go")
	if err != nil {
		t.Fatal(err)
	}
	for code := range meta.Errors {
		if !strings.Contains(string(source), `Code = "`+code+`"`) {
			t.Errorf("the code %s has no constant", code)
		}
	}
}

func TestEveryValueOfTheProtocolIsKnown(t *testing.T) {
	schema := readJSON[struct {
		Defs map[string]*schemaDefinition `json:"$defs"`
	}](t, "schema/v1/schema.json")
	known := map[string][]any{}
	for _, reason := range finishReasons {
		known["ResultDone.finish_reason"] = append(known["ResultDone.finish_reason"], string(reason))
	}
	for _, role := range []Role{System, Developer, User, Assistant, ToolRole} {
		known["Message.role"] = append(known["Message.role"], string(role))
	}
	for _, channel := range []Channel{Content, Reasoning} {
		known["Token.channel"] = append(known["Token.channel"], string(channel))
	}
	for path, values := range known {
		definition, field, _ := strings.Cut(path, ".")
		for _, value := range schema.Defs[definition].Properties[field].Enum {
			if !slices.Contains(values, value) {
				t.Errorf("%s has the value %v, which no constant has", path, value)
			}
		}
	}
}

type metaPart struct {
	Features []string
	When     map[string]string
}

type metaField struct {
	Features []string
	Values   map[string]metaPart
	Forms    map[string]metaPart
}

func TestFeaturesFollowTheSchema(t *testing.T) {
	meta := readJSON[struct {
		Commands map[string]struct {
			Features []string
			Fields   map[string]metaField
		}
	}](t, "schema/v1/meta.json")
	table := featureTable{}
	for name, command := range meta.Commands {
		fields := map[string]requirement{}
		if len(command.Features) > 0 {
			fields[""] = requirement{Features: command.Features}
		}
		for path, field := range command.Fields {
			found := requirement{
				Features: field.Features,
				Values:   ofParts(field.Values, field.Features),
				Forms:    ofParts(field.Forms, field.Features),
				When:     conditions(field.Forms),
			}
			if found.Features != nil || found.Values != nil || found.Forms != nil {
				fields[path] = found
			}
		}
		if len(fields) > 0 {
			table[name] = fields
		}
	}
	want, err := json.MarshalIndent(table, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *update {
		if err := os.WriteFile("features.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
	} else if string(want) != string(featuresJSON) {
		t.Error("features.json differs from protocol/schema/v1/meta.json: run go generate in clients/go")
	}
}

// conditions returns what holds wherever a form counts.
func conditions(forms map[string]metaPart) (when map[string]map[string]string) {
	for name, form := range forms {
		if form.When != nil {
			if when == nil {
				when = map[string]map[string]string{}
			}
			when[name] = form.When
		}
	}
	return when
}

// ofParts returns the features of values or forms that need others than their field.
func ofParts(parts map[string]metaPart, field []string) (features map[string][]string) {
	for name, part := range parts {
		if len(part.Features) > 0 && !slices.Equal(part.Features, field) {
			if features == nil {
				features = map[string][]string{}
			}
			features[name] = part.Features
		}
	}
	return features
}
