import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import {
  CertificateError,
  CertificateWatch,
  readCertificate,
} from '../../../src/gateway/server/certificate.ts'
import { compileServer, serviceUrls } from '../../../src/gateway/server/schema.ts'
import { Problems } from '../../../src/base/config/problems.ts'
import { certificateFolder, makeCertificate, type TestCertificate } from '../../support/certificates.ts'
import { keepEvents, SERVER_DEFAULTS } from '../../support/listener.ts'

const refusal = (files: TestCertificate): string => {
  try {
    readCertificate(files)
  } catch (error) {
    if (error instanceof CertificateError) return `${error.file} ${error.message}`
    throw error
  }
  return 'none'
}

describe('T7 a certificate and its key', () => {
  it('are read, with the day that the certificate ends', () => {
    const files = makeCertificate(certificateFolder(), 'good')
    expect(readCertificate(files).validTo).toBeGreaterThan(Date.now())
  })

  it('are refused, saying which of the two and why, where they cannot be served', () => {
    const folder = certificateFolder()
    const good = makeCertificate(folder, 'good')
    const other = makeCertificate(folder, 'other')
    expect(refusal({ ...good, certificate: `${folder}/absent` })).toBe(
      'certificate cannot be read (ENOENT: there is no such file or folder)',
    )
    expect(refusal({ ...good, key: `${folder}/absent` })).toBe(
      'key cannot be read (ENOENT: there is no such file or folder)',
    )
    expect(refusal({ ...good, key: other.key })).toBe('key is not the key of the certificate')
    expect(refusal({ certificate: good.certificate, key: good.certificate })).toMatch(/^key /)
    expect(refusal({ certificate: good.key, key: good.key })).toBe('certificate holds no certificate in PEM')
  })

  it('are refused where every user of the machine may read the key', () => {
    const files = makeCertificate(certificateFolder(), 'open')
    chmodSync(files.key, 0o644)
    expect(refusal(files)).toMatch(/^key may be read by every user/)
    chmodSync(files.key, 0o640)
    expect(refusal(files)).toBe('none')
  })

  it('are checked with the configuration, which tells the key path', () => {
    const files = makeCertificate(certificateFolder(), 'open')
    chmodSync(files.key, 0o604)
    const problems = new Problems()
    compileServer({ ...SERVER_DEFAULTS, tls: files }, problems)
    expect(problems.list.map(({ path }) => path)).toEqual([['server', 'tls', 'key']])
    expect(serviceUrls({ ...SERVER_DEFAULTS, tls: files }, 1).baseUrl).toBe('https://127.0.0.1:1')
  })
})

describe('a watch on a certificate', () => {
  function watching(files: TestCertificate, now = Date.now()) {
    const used: Buffer[] = []
    const events = keepEvents()
    const watch = new CertificateWatch({
      files,
      pair: readCertificate(files),
      use: ({ cert }) => used.push(cert),
      recorder: events,
      clock: { now: () => now, monotonic: () => 0 },
    })
    return { watch, used, events }
  }

  it('takes a new pair up once, and keeps the old one while the new one is half written', () => {
    const folder = certificateFolder()
    const files = makeCertificate(folder, 'served')
    const next = makeCertificate(folder, 'next')
    const { watch, used, events } = watching(files)
    watch.look()
    writeFileSync(files.certificate, readFileSync(next.certificate))
    watch.look()
    watch.look()
    expect(used).toEqual([])
    expect(events.notes.map(({ event }) => event)).toEqual(['certificate_refused'])
    writeFileSync(files.key, readFileSync(next.key))
    watch.look()
    watch.look()
    expect(used).toEqual([readFileSync(next.certificate)])
    expect(events.notes.at(-1)?.event).toBe('certificate_taken_up')
    watch.close()
  })

  it('tells of a certificate that has expired', () => {
    const files = makeCertificate(certificateFolder(), 'old')
    const { watch, events } = watching(files, Date.now() + 3 * 86_400_000)
    expect(events.notes.map(({ event }) => event)).toEqual(['certificate_expired'])
    watch.close()
  })
})
