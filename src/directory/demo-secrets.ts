import type { PasswordHasher } from '../contracts/people.ts'
import type { Directory } from './compile.ts'
import { hashSecret } from './secret-hash.ts'

/** Secrets that the documentation prints (C10): everybody can log in with them. */
const CLIENT_SECRETS: Readonly<Record<string, string>> = {
  'acme-books': 'acme-books-secret',
  'globex-ledger': 'globex-ledger-secret',
  ledgerline: 'ledgerline-secret',
}
const PASSWORDS: Readonly<Record<string, string>> = {
  alice: 'alice-password',
  bob: 'bob-password',
  carol: 'carol-password',
}
const KNOWN_HASHES = new Set(Object.values(CLIENT_SECRETS).map(hashSecret))

type Suspect = readonly [name: string, secret: string, hash: string]

function suspects({ clients, users }: Directory): Suspect[] {
  const ofClients = Object.entries(CLIENT_SECRETS).flatMap(([id, secret]) =>
    (clients.get(id)?.secretHashes ?? []).map((hash): Suspect => [`client ${id}`, secret, hash]),
  )
  const ofUsers = Object.entries(PASSWORDS).flatMap(([name, secret]): Suspect[] => {
    const user = users.get(name)
    return user === undefined ? [] : [[`user ${name}`, secret, user.password]]
  })
  return [...ofClients, ...ofUsers]
}

/**
 * The entries of a directory that can be used with a demo secret, such as `client acme-books` or `user alice`. The
 * secret counts however it is hashed. A service that other machines can reach must not start with one (C10, T7).
 * Costs at most a dozen hashes. Rejects as the hasher does.
 */
export async function findDemoSecrets(
  directory: Directory,
  hasher: PasswordHasher,
): Promise<readonly string[]> {
  const renamed = [...directory.clients.values()]
    .filter((client) => client.secretHashes.some((hash) => KNOWN_HASHES.has(hash)))
    .map((client) => `client ${client.id}`)
  const opened: string[] = []
  for (const [name, secret, hash] of suspects(directory))
    if (await hasher.verify(secret, hash)) opened.push(name)
  return [...new Set([...renamed, ...opened])]
}
