package lmwire

import (
	_ "embed"
	"encoding/json"
	"slices"
	"strings"
	"sync"
)

//go:generate go test -run TestFeaturesFollowTheSchema -update

// A requirement has the features of which a worker must list one, for a field and for some of its values and forms.
type requirement struct {
	Features []string            `json:"features,omitzero"`
	Values   map[string][]string `json:"values,omitzero"`
	Forms    map[string][]string `json:"forms,omitzero"`
	// Members that the object around the field has wherever a form counts.
	When map[string]map[string]string `json:"when,omitzero"`
}

// featureTable has the requirements of each command by the path of the field. The empty path is the command itself.
type featureTable map[string]map[string]requirement

//go:embed features.json
var featuresJSON []byte

var newerThan10 = sync.OnceValue(func() (table featureTable) {
	if err := json.Unmarshal(featuresJSON, &table); err != nil {
		panic(err)
	}
	return table
})

// A featureSet has the features that a worker lists. A host sends nothing else that is newer than protocol 1.0.
type featureSet struct {
	listed map[string]bool
	whole  map[string]bool // commands of which the worker serves everything
}

func newFeatureSet(features []string) featureSet {
	set := featureSet{listed: map[string]bool{}, whole: map[string]bool{}}
	for _, feature := range features {
		set.listed[feature] = true
	}
	for command, requirements := range newerThan10() {
		check := featureCheck{listed: set.listed}
		for _, required := range requirements {
			check.needAll(required)
		}
		set.whole[command] = len(check.missing) == 0
	}
	return set
}

func (s featureSet) lists(feature string) bool { return s.listed[feature] }

// missing returns the features of a command that the worker does not list.
func (s featureSet) missing(command string, fields []byte) []string {
	requirements := newerThan10()[command]
	if len(requirements) == 0 || s.whole[command] {
		return nil // without a look at the fields, which can have megabytes of images
	}
	check := featureCheck{listed: s.listed, requirements: requirements}
	check.need(requirements[""].Features)
	var object map[string]any
	if json.Unmarshal(fields, &object) == nil {
		check.object("", object)
	}
	slices.Sort(check.missing)
	return slices.Compact(check.missing)
}

type featureCheck struct {
	listed       map[string]bool
	requirements map[string]requirement
	missing      []string
}

// need notes that one of the features is missing.
func (c *featureCheck) need(features []string) {
	if len(features) > 0 && !slices.ContainsFunc(features, func(feature string) bool { return c.listed[feature] }) {
		c.missing = append(c.missing, strings.Join(features, " or "))
	}
}

// needAll needs what each value and form of a field requires.
func (c *featureCheck) needAll(required requirement) {
	c.need(required.Features)
	for _, features := range required.Values {
		c.need(features)
	}
	for _, features := range required.Forms {
		c.need(features)
	}
}

func (c *featureCheck) object(path string, object map[string]any) {
	for name, value := range object {
		field := name
		if path != "" {
			field = path + "." + name
		}
		c.value(field, value)
	}
	c.absent(path, object)
}

func (c *featureCheck) value(path string, value any) {
	required := c.requirements[path]
	c.need(required.Features)
	switch value := value.(type) {
	case string:
		c.need(required.Values[value])
		c.need(required.Forms["string"])
	case []any:
		for _, item := range value {
			c.value(path+"[]", item)
		}
	case map[string]any:
		c.object(path, value)
	}
}

// absent checks the fields that an older worker requires.
func (c *featureCheck) absent(path string, object map[string]any) {
	for field, required := range c.requirements {
		parent, name := "", field
		if dot := strings.LastIndexByte(field, '.'); dot >= 0 {
			parent, name = field[:dot], field[dot+1:]
		}
		features := required.Forms["absent"]
		if parent == path && features != nil && object[name] == nil && hasAll(object, required.When["absent"]) {
			c.need(features)
		}
	}
}

// hasAll returns whether an object has members with these values.
func hasAll(object map[string]any, members map[string]string) bool {
	for name, value := range members {
		if object[name] != value {
			return false
		}
	}
	return true
}
