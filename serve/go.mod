module github.com/loris-ml/loris/serve

go 1.26.0

require github.com/loris-ml/loris v0.0.0

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/dustin/go-humanize v1.0.1 // indirect
	golang.org/x/sys v0.46.0 // indirect
)

replace github.com/loris-ml/loris => ../
