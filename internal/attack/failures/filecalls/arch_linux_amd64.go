package filecalls

import "golang.org/x/sys/unix"

const architecture, newfstatat = unix.AUDIT_ARCH_X86_64, unix.SYS_NEWFSTATAT
