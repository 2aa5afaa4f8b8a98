package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"unicode/utf8"
)

// Parse returns the members of a line that is one JSON object in UTF-8.
func Parse(line []byte) (map[string]any, error) {
	if !utf8.Valid(line) {
		return nil, errors.New("the line is not UTF-8")
	}
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, fmt.Errorf("the line is not JSON: %w", err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, errors.New("the line has more than one value")
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("the line is not a JSON object")
	}
	return object, nil
}

// Bind sets the fields of the struct that into points to from the members of a parsed object.
//
// Bind is stricter than encoding/json. Names must match exactly. A field without omitzero in its tag is required. Null
// counts as absent. Unknown members are ignored.
func Bind(object map[string]any, into any) error {
	return bindStruct(object, reflect.ValueOf(into).Elem())
}

func bindStruct(object map[string]any, into reflect.Value) error {
	for i := range into.NumField() {
		name, options, _ := strings.Cut(into.Type().Field(i).Tag.Get("json"), ",")
		if name == "-" || name == "" {
			continue
		}
		value := object[name]
		if value == nil {
			if options != "omitzero" {
				return fmt.Errorf("`%s` is missing", name)
			}
			continue
		}
		if err := bind(value, into.Field(i)); err != nil {
			return fmt.Errorf("`%s`: %w", name, err)
		}
	}
	return nil
}

func bind(value any, into reflect.Value) error {
	switch into.Kind() {
	case reflect.Pointer:
		into.Set(reflect.New(into.Type().Elem()))
		return bind(value, into.Elem())
	case reflect.Interface:
		into.Set(reflect.ValueOf(value))
		return nil
	case reflect.Struct:
		object, ok := value.(map[string]any)
		if !ok {
			return wrongType(value, "an object")
		}
		return bindStruct(object, into)
	case reflect.Slice:
		return bindSlice(value, into)
	default:
		return bindScalar(value, into)
	}
}

func bindSlice(value any, into reflect.Value) error {
	items, ok := value.([]any)
	if !ok {
		return wrongType(value, "a list")
	}
	into.Set(reflect.MakeSlice(into.Type(), len(items), len(items)))
	for i, item := range items {
		if err := bind(item, into.Index(i)); err != nil {
			return fmt.Errorf("item %d: %w", i, err)
		}
	}
	return nil
}

func bindScalar(value any, into reflect.Value) error {
	switch into.Kind() {
	case reflect.String:
		text, ok := value.(string)
		if !ok {
			return wrongType(value, "a string")
		}
		into.SetString(text)
	case reflect.Bool:
		truth, ok := value.(bool)
		if !ok {
			return wrongType(value, "a boolean")
		}
		into.SetBool(truth)
	case reflect.Int, reflect.Int64:
		number, _ := value.(json.Number)
		integer, err := number.Int64()
		if err != nil {
			return wrongType(value, "an integer")
		}
		into.SetInt(integer)
	case reflect.Float64:
		number, _ := value.(json.Number)
		float, err := number.Float64()
		if err != nil {
			return wrongType(value, "a number")
		}
		into.SetFloat(float)
	default:
		panic("lmwire: no JSON value fits a " + into.Type().String())
	}
	return nil
}

func wrongType(value any, expected string) error {
	return fmt.Errorf("must be %s, not %.40v", expected, value)
}
