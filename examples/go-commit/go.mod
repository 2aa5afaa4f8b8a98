module github.com/lmwire/lmwire/examples/go-commit

go 1.25.0

require github.com/lmwire/lmwire/clients/go v0.1.0

// Leave this line out in a program of your own.
replace github.com/lmwire/lmwire/clients/go => ../../clients/go
