package pt2

// Limits bound what a package may make its reader do. A zero field has the
// default that its comment names.
type Limits struct {
	// Members is the number of files in a package (65536).
	Members int
	// Text is the size of one text that is read whole, such as a JSON or the
	// generated source (64 MiB).
	Text int64
	// Inflated is what all compressed members of an archive inflate to together
	// (16 GiB, and 256 MiB and 32 times the archive if that is less). Members that are not compressed take no memory: they are read
	// where they lie.
	Inflated int64
	// Memory is the size of a compressed library that is inflated into memory to
	// be inspected (1 GiB).
	Memory int64
	// Ratio is how many times larger than its compressed form a member may be
	// (200). Small members of up to 1 MiB are exempt.
	Ratio int64

	programs bool // archives without compiled models are taken, too
}

func (l Limits) orDefaults() Limits {
	set := func(v *int64, def int64) {
		if *v == 0 {
			*v = def
		}
	}
	if l.Members == 0 {
		l.Members = 65536
	}
	set(&l.Text, 64<<20)
	set(&l.Memory, 1<<30)
	set(&l.Ratio, 200)
	return l
}

const ratioExempt = 1 << 20

// inflated returns what the members of an archive of size bytes may inflate to.
func (l Limits) inflated(size int64) int64 {
	if l.Inflated != 0 {
		return l.Inflated
	}
	return min(16<<30, 256<<20+32*min(size, 1<<40))
}
