import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { makeAuthority } from '../certificates.ts'
import { SLAPD } from '../machine.ts'
import { makeFolder } from './files.ts'
import { startProgram, type StartedProgram } from './programs.ts'
import type { Service, Surroundings } from './service.ts'

const SUFFIX = 'dc=example,dc=com'

const person = (uid: string, given: string, name: string, more = ''): string =>
  `dn: uid=${uid},ou=people,${SUFFIX}
objectClass: inetOrgPerson
uid: ${uid}
cn: ${given} ${name}
givenName: ${given}
sn: ${name}
mail: ${uid}@example.com
departmentNumber: acme-books
userPassword: ${uid}-password${more}
`

const secret = (cn: string, password: string): string =>
  `dn: cn=${cn},${SUFFIX}
objectClass: applicationProcess
objectClass: simpleSecurityObject
cn: ${cn}
userPassword: ${password}
`

const unit = (ou: string): string => `dn: ou=${ou},${SUFFIX}\nobjectClass: organizationalUnit\nou: ${ou}\n`

/** A company's directory: Dora, Frank who has left, and the roles of both at ACME. */
export const ENTRIES: readonly string[] = [
  `dn: ${SUFFIX}\nobjectClass: dcObject\nobjectClass: organization\ndc: example\no: Example\n`,
  unit('people'),
  unit('groups'),
  secret('postern', 'reader-password'),
  secret('nobody', 'a-password-that-nobody-was-told'),
  person('dora', 'Dora', 'Dale'),
  person('frank', 'Frank', 'Field', '\nemployeeType: left'),
  `dn: cn=Administrator,ou=groups,${SUFFIX}
objectClass: groupOfNames
cn: Administrator
ou: ACME
member: uid=dora,ou=people,${SUFFIX}
member: uid=frank,ou=people,${SUFFIX}
`,
]

export interface SlapdParts {
  /** Gets the certificates: `authority.pem`, and those of the server. */
  readonly certificates: string
  readonly port: number
  /** In LDIF. */
  readonly entries: readonly string[]
}

/**
 * OpenLDAP's slapd over TLS only, in a folder of its own. It takes binds with a name and without a password for anonymous
 * ones, as many servers do; slapd itself has to be told so.
 */
export async function startSlapd({ certificates, port, entries }: SlapdParts): Promise<StartedProgram> {
  const { certificate, key } = makeAuthority(certificates).issue('directory', 'IP:127.0.0.1')
  const { path, remove } = makeFolder({ 'entries.ldif': entries.join('\n') })
  const file = join(path, 'slapd.conf')
  writeFileSync(
    file,
    `${['core', 'cosine', 'inetorgperson'].map((name) => `include /etc/ldap/schema/${name}.schema`).join('\n')}
modulepath /usr/lib/ldap
moduleload back_mdb
allow bind_anon_dn
TLSCertificateFile ${certificate}
TLSCertificateKeyFile ${key}
database mdb
suffix "${SUFFIX}"
directory ${path}
access to attrs=userPassword by * auth
access to * by dn.exact="cn=postern,${SUFFIX}" read by anonymous auth by * none
`,
  )
  execFileSync(join(dirname(SLAPD), 'slapadd'), ['-q', '-f', file, '-l', join(path, 'entries.ldif')])
  const args = ['-d', '0', '-f', file, '-h', `ldaps://127.0.0.1:${port}/`]
  return startProgram({ command: SLAPD, args, cleanUp: remove }, port)
}

/** The directory of the page; the file that the page names is made in data/tls. */
export async function startDirectory({ folder, portFor }: Surroundings): Promise<Service> {
  const certificates = join(folder, 'data/tls')
  mkdirSync(certificates, { recursive: true })
  const slapd = await startSlapd({ certificates, port: await portFor(9000), entries: ENTRIES })
  return { received: () => [], stop: () => slapd.stop() }
}
