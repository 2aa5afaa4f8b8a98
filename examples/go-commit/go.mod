module github.com/lmwire/lmwire/examples/go-commit

go 1.25.0

require github.com/lmwire/lmwire/clients/go v0.1.0

// In a program of your own, the path to a checkout. After a release, leave this line out.
replace github.com/lmwire/lmwire/clients/go => ../../clients/go
