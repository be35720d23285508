/** The demo's passwords with hashes that take no time, from demo.yaml beside this: for all that does not test hashing. */
import { fileURLToPath } from 'node:url'
import type { Configuration } from '../../src/operate/settings/configuration.ts'
import { DEMO_HASHES } from '../../src/operate/settings/dangers.ts'
import { SETTINGS } from '../../src/serve/start/settings.ts'

type Users = Configuration['directory']['users']

const DEMO = fileURLToPath(new URL('demo.yaml', import.meta.url))
let quick: Users | undefined

/** The same in every start of a process: a user whose hash is another one has been given another password. */
const quickUsers = (): Users => (quick ??= SETTINGS.read(DEMO, {}).configuration?.directory.users ?? {})

/** The same configuration; whoever has a password of the demo logs in with it as before. */
export function withQuickPasswords<T extends Pick<Configuration, 'directory'>>(configuration: T): T {
  const { directory } = configuration
  const users = Object.entries(directory.users).map(([name, user]) =>
    DEMO_HASHES.has(user.password)
      ? [name, { ...user, password: quickUsers()[name]?.password }]
      : [name, user],
  )
  return { ...configuration, directory: { ...directory, users: Object.fromEntries(users) } }
}
