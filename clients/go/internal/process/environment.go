package process

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// pathVariables are those in which Python looks for modules and for their compiled form.
var pathVariables = []string{"PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONPYCACHEPREFIX"}

// environment returns the variables of a child. In it, no code of the working directory runs, which may be an untrusted
// repository: Python's paths are absolute. With PYTHONINSPECT a worker would wait at Python's prompt instead of ending.
func environment(of []string) []string {
	child := make([]string, 0, len(of))
	for _, variable := range of {
		name, value, _ := strings.Cut(variable, "=")
		switch {
		case name == "PYTHONINSPECT":
		case slices.Contains(pathVariables, name):
			paths := slices.DeleteFunc(filepath.SplitList(value), func(path string) bool { return !filepath.IsAbs(path) })
			if len(paths) > 0 {
				child = append(child, name+"="+strings.Join(paths, string(os.PathListSeparator)))
			}
		default:
			child = append(child, variable)
		}
	}
	return child
}
