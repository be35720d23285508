import type { Recorder } from '../contracts/recorder.ts'
import type { Clock } from '../kernel/clock.ts'
import { FileWatch } from '../operations/file-watch.ts'
import {
  CertificateError,
  readCertificate,
  type CertificateFiles,
  type CertificatePair,
} from './certificate.ts'

export interface CertificateWatchParts {
  readonly files: CertificateFiles
  /** In use when the watch begins. */
  readonly pair: CertificatePair
  /** Takes a new pair into use. */
  readonly use: (pair: CertificatePair) => void
  readonly recorder: Pick<Recorder, 'note'>
  readonly clock: Clock
}

/** Where a folder's changes are not told (network mounts): a certificate that is not taken up is an outage. */
const LOOK_MS = 60_000

/**
 * Takes a new certificate up when its files change; connections that stand keep the one they began with. A pair that
 * cannot be served is noted and left: the old one serves on, since the second of two files may be yet to come.
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
    this.#files = new FileWatch({ changed: () => this.look(), recorder: parts.recorder })
    this.#files.watch(new Set([parts.files.certificate, parts.files.key]))
    this.#timer = setInterval(() => this.look(), LOOK_MS).unref()
    this.#tellIfExpired()
  }

  /** Reads the files now. */
  look(): void {
    try {
      this.#take(readCertificate(this.#parts.files))
      this.#trouble = undefined
    } catch (error) {
      if (!(error instanceof CertificateError)) throw error
      this.#complain(error)
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
    this.#tellIfExpired()
  }

  /** Once per trouble, not once a minute. */
  #complain({ file, message }: CertificateError): void {
    const trouble = `server.tls.${file} ${message}`
    if (trouble === this.#trouble) return
    this.#trouble = trouble
    this.#parts.recorder.note('error', 'certificate_refused', { problem: trouble })
  }

  #tellIfExpired(): void {
    const { clock, recorder } = this.#parts
    if (this.#current.validTo > clock.now()) return
    recorder.note('error', 'certificate_expired', { validTo: new Date(this.#current.validTo).toISOString() })
  }
}
