// Package sigv4 verifies requests that are signed by AWS Signature Version 4, in the header
// Authorization or in a presigned URL.
//
// It answers: who has signed this request, and is the signature right? What the signer may do is
// the business of the server.
//
// The signature covers the method, the path, the query, some headers, the body and a day, a region
// and a service, so nothing of a signed request can be changed, and it can be sent again for
// fifteen minutes only, or as long as a presigned URL says.
// Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
package sigv4
