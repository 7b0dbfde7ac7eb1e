package local

import (
	"net"
	"os"
	"syscall"
)

// sameUser reports whether the other end of a connection is a process of this user, or of the
// one who may do everything anyway. The socket's mode says so already; this is for the moment
// before it has one.
func sameUser(c net.Conn) bool {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return false
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return false
	}
	var peer *syscall.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) {
		peer, failed = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	return err == nil && failed == nil && (int(peer.Uid) == os.Getuid() || peer.Uid == 0)
}
