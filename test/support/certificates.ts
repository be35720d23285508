import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { atEnd } from './shared.ts'

export interface TestCertificate {
  readonly certificate: string
  readonly key: string
}

/** A folder that is removed when the test ends. */
export function certificateFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'postern-tls-'))
  atEnd(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** A self-signed certificate for 127.0.0.1 and its key (P-256, mode 0600), by openssl; replaces files of that name. */
export function makeCertificate(folder: string, name: string, commonName = name): TestCertificate {
  const certificate = join(folder, `${name}.pem`)
  const key = join(folder, `${name}.key`)
  const how = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2']
  const whose = ['-subj', `/CN=${commonName}`, '-addext', 'subjectAltName=IP:127.0.0.1']
  execFileSync('openssl', [...how, ...whose, '-keyout', key, '-out', certificate], { stdio: 'ignore' })
  return { certificate, key }
}

/** An authority of one's own, and certificates that it gives; all files in one folder. */
export interface TestAuthority extends TestCertificate {
  /** @param days of life from now; negative, and it has expired */
  issue(name: string, subjectAltName: string, days?: number): TestCertificate
}

const openssl = (...args: readonly string[]): unknown => execFileSync('openssl', args, { stdio: 'ignore' })
const NEW_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']

export function makeAuthority(folder: string): TestAuthority {
  const certificate = join(folder, 'authority.pem')
  const key = join(folder, 'authority.key')
  openssl(
    'req',
    '-x509',
    ...NEW_KEY,
    '-days',
    '2',
    '-subj',
    '/CN=authority',
    '-keyout',
    key,
    '-out',
    certificate,
  )
  const sign = ['-req', '-CA', certificate, '-CAkey', key, '-CAcreateserial']
  const issue: TestAuthority['issue'] = (name, subjectAltName, days = 2) => {
    const [request, extensions, own] = ['csr', 'ext', 'key'].map((end) => join(folder, `${name}.${end}`)) as [
      string,
      string,
      string,
    ]
    const issued = join(folder, `${name}.pem`)
    writeFileSync(extensions, `subjectAltName=${subjectAltName}`)
    openssl('req', ...NEW_KEY, '-subj', `/CN=${name}`, '-keyout', own, '-out', request)
    openssl('x509', ...sign, '-in', request, '-days', String(days), '-extfile', extensions, '-out', issued)
    return { certificate: issued, key: own }
  }
  return { certificate, key, issue }
}
