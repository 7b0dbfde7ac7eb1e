package port

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"
)

const (
	certFile = "ca.pem"
	keyFile  = "ca.key"

	authorityLife = 10 * 365 * 24 * time.Hour
	// leafLife and skew make 397 days, the most that some clients take from any authority.
	leafLife = 396 * 24 * time.Hour
	skew     = 24 * time.Hour // for clients whose clock is behind
)

// Authority is a local certificate authority, made once and kept: clients that trust its
// certificate trust every server of this directory. Whoever has its key can pose as any server to
// those clients, so it is better named to one process (SSL_CERT_FILE, NODE_EXTRA_CA_CERTS) than
// to a whole machine.
//
// It has no name constraints: which hosts it will certify is not known when it is made.
type Authority struct {
	path string
	cert *x509.Certificate
	key  crypto.Signer
	now  func() time.Time
}

// OpenAuthority opens the authority kept in a directory, which has to exist, and makes it the
// first time: ca.pem, its certificate, and ca.key, which is its owner's alone. It does not replace
// what it cannot use, because clients may trust it.
func OpenAuthority(dir string) (*Authority, error) {
	return openAuthority(dir, time.Now)
}

func openAuthority(dir string, now func() time.Time) (*Authority, error) {
	a := &Authority{path: filepath.Join(dir, certFile), now: now}
	var err error
	if a.key, err = a.loadOrCreateKey(filepath.Join(dir, keyFile)); err != nil {
		return nil, err
	}
	encoded, err := os.ReadFile(a.path)
	if errors.Is(err, fs.ErrNotExist) {
		encoded, err = a.create()
	}
	if err != nil {
		return nil, err
	}
	if a.cert, err = parseCertificate(encoded); err == nil {
		err = a.check()
	}
	if err != nil {
		return nil, fmt.Errorf("the certificate in %s cannot be used (%w): restore it, or remove it and %s and make clients trust the new one",
			a.path, err, keyFile)
	}
	return a, nil
}

// CertFile is the path of the certificate that clients are to trust.
func (a *Authority) CertFile() string { return a.path }

// Config returns a server's configuration with a new certificate for localhost, the loopback
// addresses and hosts, which are names or addresses. It is good for 13 months: make another when
// the server starts.
func (a *Authority) Config(hosts ...string) (*tls.Config, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	now := a.now()
	leaf := &x509.Certificate{
		SerialNumber: serial(),
		Subject:      pkix.Name{CommonName: "localhost"},
		NotBefore:    latest(now.Add(-skew), a.cert.NotBefore),
		NotAfter:     earliest(now.Add(leafLife), a.cert.NotAfter),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:     []string{"localhost"},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},

		BasicConstraintsValid: true,
	}
	for _, host := range hosts {
		ip := net.ParseIP(host)
		switch {
		case host == "":
			return nil, errors.New("a host for the certificate is empty")
		case ip != nil && !slices.ContainsFunc(leaf.IPAddresses, ip.Equal):
			leaf.IPAddresses = append(leaf.IPAddresses, ip)
		case ip == nil && !slices.Contains(leaf.DNSNames, host):
			leaf.DNSNames = append(leaf.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("make a certificate for %q: %w", hosts, err)
	}
	return &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der, a.cert.Raw}, PrivateKey: key}},
		MinVersion:   tls.VersionTLS12,
	}, nil
}

// check tells why the certificate is not that of an authority that can sign now.
func (a *Authority) check() error {
	public, ok := a.key.Public().(interface{ Equal(crypto.PublicKey) bool })
	now := a.now()
	switch {
	case !ok || !public.Equal(a.cert.PublicKey):
		return fmt.Errorf("it does not belong to the key in %s", keyFile)
	case !a.cert.IsCA || a.cert.KeyUsage&x509.KeyUsageCertSign == 0:
		return errors.New("it is not that of an authority")
	case now.Before(a.cert.NotBefore):
		return fmt.Errorf("it is not valid before %s", a.cert.NotBefore.Format(time.DateTime))
	case !now.Before(a.cert.NotAfter):
		return fmt.Errorf("it expired on %s", a.cert.NotAfter.Format(time.DateTime))
	}
	return nil
}

// create makes the certificate. It is done after the key is safe; a key alone is one of an
// authority that nobody can trust yet.
func (a *Authority) create() ([]byte, error) {
	now, number := a.now(), serial()
	template := &x509.Certificate{
		SerialNumber: number,
		// The number tells the authorities of several directories apart.
		Subject:   pkix.Name{CommonName: "dlq local CA " + hex.EncodeToString(number.Bytes()[:4])},
		NotBefore: now.Add(-skew),
		NotAfter:  now.Add(authorityLife),
		KeyUsage:  x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		IsCA:      true, MaxPathLenZero: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("make the certificate of the local authority: %w", err)
	}
	encoded := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return encoded, writeFile(a.path, encoded, 0o644)
}

// loadOrCreateKey makes a key only where there is no certificate that would be lost with it.
func (a *Authority) loadOrCreateKey(path string) (crypto.Signer, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(a.path); !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s is without its key %s: restore the key, or remove the certificate and make clients trust a new one", a.path, keyFile)
		}
		return createKey(path)
	}
	if err != nil {
		return nil, err
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("others may read the key of the local authority: run chmod 600 %s", path)
	}
	encoded, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	key, err := parseKey(encoded)
	if err != nil {
		return nil, fmt.Errorf("the key in %s cannot be used (%w): restore it, or remove it and %s and make clients trust a new one", path, err, certFile)
	}
	return key, nil
}

func createKey(path string) (crypto.Signer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return key, writeFile(path, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600)
}

func parseKey(encoded []byte) (crypto.Signer, error) {
	block, _ := pem.Decode(encoded)
	if block == nil {
		return nil, errors.New("it is not in PEM")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("it is not a key in PKCS #8") // err might quote it
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, errors.New("it cannot sign")
	}
	return signer, nil
}

func parseCertificate(encoded []byte) (*x509.Certificate, error) {
	block, rest := pem.Decode(encoded)
	if block == nil || len(bytes.TrimSpace(rest)) > 0 {
		return nil, errors.New("it is not one certificate in PEM")
	}
	return x509.ParseCertificate(block.Bytes)
}

// writeFile writes a file whole or not at all.
func writeFile(path string, content []byte, mode os.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // there only if something failed
	_, err = f.Write(content)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// serial returns a number of 128 random bits, positive and never short.
func serial() *big.Int {
	b := make([]byte, 16)
	rand.Read(b)        // never fails
	b[0] = b[0]>>1 | 64 // positive, and the same length always
	return new(big.Int).SetBytes(b)
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
