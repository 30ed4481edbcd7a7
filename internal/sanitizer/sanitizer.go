// Package sanitizer tells tests which sanitizers are compiled in. Both change what is allocated, so that
// allocations cannot be counted: the race detector makes pools drop what they keep, and the address
// sanitizer puts room around each allocation.
package sanitizer
