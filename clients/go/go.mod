module github.com/lmwire/lmwire/clients/go

go 1.25.0
