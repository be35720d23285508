import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import type { Recorder } from '../../base/contracts/records/recorder.ts'
import type { Clock } from '../../base/kernel/clock.ts'
import { reasonInWords } from '../../base/kernel/thrown.ts'
import { FileWatch } from '../../base/contracts/processes/file-watch.ts'

/** The absolute paths of a certificate and its key. */
export interface CertificateFiles {
  /** PEM: the certificate first, then those between it and its authority. */
  readonly certificate: string
  /** PEM, without a passphrase. */
  readonly key: string
}

interface CertificatePair {
  readonly cert: Buffer
  readonly key: Buffer
  /** When the certificate expires, in milliseconds since the epoch. */
  readonly validTo: number
}

/** A pair that cannot be served. The message says why, without the path, and never what is in a file. */
export class CertificateError extends Error {
  override readonly name = 'CertificateError'
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
    throw new CertificateError(file, `cannot be read (${reasonInWords(error)})`)
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

interface CertificateWatchParts {
  readonly files: CertificateFiles
  readonly pair: CertificatePair
  readonly use: (pair: CertificatePair) => void
  readonly recorder: Pick<Recorder, 'note'>
  readonly clock: Clock
}

/**
 * How often the files are read, in milliseconds, even if nothing reports a change, as on network mounts: a certificate that
 * is not taken up is an outage.
 */
const LOOK_MS = 60_000

/**
 * Takes a new certificate up when its files change; open connections keep the one they began with. A pair that cannot be
 * served is noted and left: the old one is still served, because the second of two files may be yet to come.
 */
export class CertificateWatch {
  readonly #parts: CertificateWatchParts
  readonly #files: FileWatch
  readonly #timer: NodeJS.Timeout
  #current: CertificatePair
  #trouble: string | undefined

  constructor(parts: CertificateWatchParts) {
    this.#parts = parts
    this.#current = parts.pair
    this.#files = new FileWatch(parts.recorder, () => this.look())
    this.#files.watch(new Set([parts.files.certificate, parts.files.key]))
    this.#timer = setInterval(() => this.look(), LOOK_MS).unref()
    this.#reportIfExpired()
  }

  /** When the certificate in use expires, in milliseconds since the epoch. */
  get validTo(): number {
    return this.#current.validTo
  }

  look(): void {
    try {
      this.#take(readCertificate(this.#parts.files))
      this.#trouble = undefined
    } catch (error) {
      if (!(error instanceof CertificateError)) throw error
      this.#reportRefused(error)
    }
  }

  close(): void {
    clearInterval(this.#timer)
    this.#files.close()
  }

  #take(pair: CertificatePair): void {
    if (pair.cert.equals(this.#current.cert) && pair.key.equals(this.#current.key)) return
    this.#current = pair
    this.#parts.use(pair)
    this.#parts.recorder.note('info', 'certificate_taken_up', {
      validTo: new Date(pair.validTo).toISOString(),
    })
    this.#reportIfExpired()
  }

  /** Reports each trouble once, not once a minute. */
  #reportRefused({ file, message }: CertificateError): void {
    const trouble = `server.tls.${file} ${message}`
    if (trouble === this.#trouble) return
    this.#trouble = trouble
    this.#parts.recorder.note('error', 'certificate_refused', { problem: trouble })
  }

  #reportIfExpired(): void {
    const { clock, recorder } = this.#parts
    if (this.#current.validTo > clock.now()) return
    recorder.note('error', 'certificate_expired', { validTo: new Date(this.#current.validTo).toISOString() })
  }
}
