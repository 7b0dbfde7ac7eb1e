package port

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestAuthorityIsMadeOnceAndKept(t *testing.T) {
	dir := t.TempDir()
	first, err := OpenAuthority(dir)
	if err != nil {
		t.Fatal(err)
	}
	second, err := OpenAuthority(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !first.cert.Equal(second.cert) {
		t.Error("the certificate is another one after a restart")
	}
	for name, mode := range map[string]os.FileMode{certFile: 0o644, keyFile: 0o600} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v, want %v", name, info.Mode(), err, mode)
		}
	}
	if files, _ := os.ReadDir(dir); len(files) != 2 {
		t.Errorf("files: %v", files)
	}
	if key, ok := second.cert.PublicKey.(*ecdsa.PublicKey); !ok || key.Curve != elliptic.P256() {
		t.Errorf("key %T", second.cert.PublicKey)
	}
	if life := time.Until(second.cert.NotAfter); life < 9*365*24*time.Hour || life > 11*365*24*time.Hour {
		t.Errorf("it lives %v", life)
	}
	if second.CertFile() != filepath.Join(dir, certFile) {
		t.Errorf("CertFile = %s", second.CertFile())
	}
}

func TestCertificate(t *testing.T) {
	a, err := OpenAuthority(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	config, err := a.Config("dlq.example", "192.0.2.7", "localhost", "::1", "dlq", "localhost:5672")
	if err != nil {
		t.Fatal(err)
	}
	again, err := a.Config()
	if err != nil {
		t.Fatal(err)
	}
	leaf, other := parseLeaf(t, config), parseLeaf(t, again)
	if leaf.SerialNumber.Cmp(other.SerialNumber) == 0 || leaf.PublicKey.(*ecdsa.PublicKey).Equal(other.PublicKey) {
		t.Error("the certificate is not a new one each time")
	}
	if life := leaf.NotAfter.Sub(leaf.NotBefore); life > 397*24*time.Hour {
		t.Errorf("it lives %v", life)
	}
	if len(leaf.DNSNames) != 4 || len(leaf.IPAddresses) != 3 {
		t.Errorf("names %q, addresses %v", leaf.DNSNames, leaf.IPAddresses)
	}
	if config.MinVersion != tls.VersionTLS12 {
		t.Errorf("TLS %#x", config.MinVersion)
	}
	roots := x509.NewCertPool() // as a client makes it of the file
	content, err := os.ReadFile(a.CertFile())
	if err != nil || !roots.AppendCertsFromPEM(content) {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		"localhost": true, "127.0.0.1": true, "::1": true, "dlq.example": true, "192.0.2.7": true, "dlq": true,
		"localhost:5672": true, // for the Azure SDK for Go, which takes the port for a part of the name
		"other.example":  false, "127.0.0.2": false,
	} {
		host := name
		if ip := net.ParseIP(name); ip != nil {
			host = "[" + name + "]"
		}
		if _, err := leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: roots}); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := a.Config(""); err == nil {
		t.Error("an empty host was taken")
	}
}

func parseLeaf(t *testing.T, c *tls.Config) *x509.Certificate {
	t.Helper()
	leaf, err := x509.ParseCertificate(c.Certificates[0].Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	return leaf
}

func TestLeafEndsWithTheAuthority(t *testing.T) {
	dir := t.TempDir()
	if _, err := OpenAuthority(dir); err != nil {
		t.Fatal(err)
	}
	late := time.Now().Add(authorityLife - 24*time.Hour)
	a, err := openAuthority(dir, func() time.Time { return late })
	if err != nil {
		t.Fatal(err)
	}
	config, err := a.Config()
	if err != nil {
		t.Fatal(err)
	}
	if leaf := parseLeaf(t, config); leaf.NotAfter.After(a.cert.NotAfter) || leaf.NotBefore.After(late) {
		t.Errorf("from %v to %v, the authority to %v", leaf.NotBefore, leaf.NotAfter, a.cert.NotAfter)
	}
}

func TestAuthorityRefusesWhatItCannotUse(t *testing.T) {
	day := 24 * time.Hour
	for _, test := range []struct {
		name  string
		spoil func(t *testing.T, cert, key string)
		later time.Duration
		want  string
	}{
		{"no key", func(t *testing.T, _, key string) { remove(t, key) }, 0, "without its key"},
		{"a key for all to read", func(t *testing.T, _, key string) { check(t, os.Chmod(key, 0o644)) }, 0, "chmod 600"},
		{"a damaged key", func(t *testing.T, _, key string) { truncate(t, key) }, 0, "cannot be used"},
		{"a damaged certificate", func(t *testing.T, cert, _ string) { truncate(t, cert) }, 0, "cannot be used"},
		{"an empty certificate", func(t *testing.T, cert, _ string) { check(t, os.Truncate(cert, 0)) }, 0, "cannot be used"},
		{"another's certificate", func(t *testing.T, cert, _ string) {
			other, err := OpenAuthority(t.TempDir())
			check(t, err)
			check(t, os.Rename(other.CertFile(), cert))
		}, 0, "does not belong"},
		{"no authority", func(t *testing.T, cert, key string) {
			a, err := OpenAuthority(filepath.Dir(cert))
			check(t, err)
			config, err := a.Config()
			check(t, err)
			leaf := config.Certificates[0]
			der, err := x509.MarshalPKCS8PrivateKey(leaf.PrivateKey)
			check(t, err)
			check(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600))
			check(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf.Certificate[0]}), 0o600))
		}, 0, "not that of an authority"},
		{"expired", func(*testing.T, string, string) {}, authorityLife + day, "expired"},
		{"not yet valid", func(*testing.T, string, string) {}, -2 * day, "not valid before"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			_, err := OpenAuthority(dir)
			check(t, err)
			cert, key := filepath.Join(dir, certFile), filepath.Join(dir, keyFile)
			test.spoil(t, cert, key)
			before, _ := os.ReadFile(cert)
			_, err = openAuthority(dir, func() time.Time { return time.Now().Add(test.later) })
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("OpenAuthority: %v, want %q", err, test.want)
			}
			if after, _ := os.ReadFile(cert); string(after) != string(before) {
				t.Error("the certificate was replaced")
			}
		})
	}
}

// A crash between the two files leaves a key alone: nobody can trust it yet.
func TestAKeyAloneGetsACertificate(t *testing.T) {
	dir := t.TempDir()
	_, err := OpenAuthority(dir)
	check(t, err)
	remove(t, filepath.Join(dir, certFile))
	if _, err := OpenAuthority(dir); err != nil {
		t.Error(err)
	}
}

func TestAuthorityNeedsItsDirectory(t *testing.T) {
	if _, err := OpenAuthority(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("it was made in a directory that does not exist")
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, path string) { t.Helper(); check(t, os.Remove(path)) }

func truncate(t *testing.T, path string) {
	t.Helper()
	info, err := os.Stat(path)
	check(t, err)
	check(t, os.Truncate(path, info.Size()/2))
}
