module github.com/loris-ml/loris/dist/mpi

go 1.26.0

require (
	github.com/ebitengine/purego v0.11.3
	github.com/loris-ml/loris v0.0.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/dgraph-io/ristretto/v2 v2.4.2 // indirect
	github.com/dustin/go-humanize v1.0.1 // indirect
	github.com/hashicorp/golang-lru/v2 v2.0.7 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
)

replace github.com/loris-ml/loris => ../../
