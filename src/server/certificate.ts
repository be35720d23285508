import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { createSecureContext } from 'node:tls'

/** Where a certificate and its key lie, as absolute paths. */
export interface CertificateFiles {
  /** PEM: the certificate first, then those between it and its authority. */
  readonly certificate: string
  /** PEM, without a passphrase. */
  readonly key: string
}

/** A certificate and its key, which fit each other. */
export interface CertificatePair {
  readonly cert: Buffer
  readonly key: Buffer
  /** Milliseconds since the epoch. */
  readonly validTo: number
}

/** A pair that cannot be served. The message tells why, without the path, and never what is in a file. */
export class CertificateError extends Error {
  override readonly name = 'CertificateError'
  /** Which of the two it is about. */
  readonly file: keyof CertificateFiles

  constructor(file: keyof CertificateFiles, message: string) {
    super(message)
    this.file = file
  }
}

/** TLS 1.0 and 1.1 are dead (RFC 8996). */
export const MIN_VERSION = 'TLSv1.2'

const READABLE_BY_ALL = 0o004

/** Reads a pair. Throws CertificateError if a file cannot be read or used, or they do not fit, or others may read the key. */
export function readCertificate(files: CertificateFiles): CertificatePair {
  const cert = readPart(files, 'certificate')
  const key = readPart(files, 'key')
  if ((statSync(files.key).mode & READABLE_BY_ALL) !== 0)
    throw new CertificateError('key', 'may be read by every user of this machine; expected mode 0600 or 0640')
  const leaf = attempt('certificate', 'holds no certificate in PEM', () => new X509Certificate(cert))
  const own = attempt('key', 'holds no private key in PEM without a passphrase', () => createPrivateKey(key))
  if (!leaf.checkPrivateKey(own)) throw new CertificateError('key', 'is not the key of the certificate')
  attempt('certificate', 'cannot be served with TLS: the chain or the strength of its key will not do', () =>
    createSecureContext({ cert, key, minVersion: MIN_VERSION }),
  )
  return { cert, key, validTo: leaf.validToDate.getTime() }
}

function readPart(files: CertificateFiles, file: keyof CertificateFiles): Buffer {
  try {
    return readFileSync(files[file])
  } catch (error) {
    throw new CertificateError(file, `cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unknown'})`)
  }
}

/** OpenSSL's own words are not passed on: they quote what they stumbled over. */
function attempt<T>(file: keyof CertificateFiles, message: string, work: () => T): T {
  try {
    return work()
  } catch {
    throw new CertificateError(file, message)
  }
}
