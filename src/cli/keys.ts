import { existsSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { readConfiguration, type Configuration } from '../settings/configuration.ts'
import { epochSeconds, systemClock } from '../kernel/clock.ts'
import { planKeys } from '../keys/config.ts'
import { examineKeys } from '../keys/examine-folder.ts'
import { createKey, newestGeneration, readKeyFolder } from '../keys/key-folder.ts'
import { createPrivateFolder, KeyFolderError } from '../keys/private-folder.ts'
import { scheduleKeys } from '../keys/schedule.ts'
import type { KeysPlan } from '../keys/service-keys.ts'
import { sqliteFile } from '../stores/config.ts'
import { openStore } from '../stores/open-store.ts'
import { StoreError } from '../stores/store-error.ts'
import { configurationFile, EXIT, writeReport, type Terminal, UsageError, type Command } from './command.ts'
import { replaceKeys } from './replace-keys.ts'

interface Asked {
  readonly configuration: Configuration
  readonly plan: KeysPlan
  /** `--compromised`. */
  readonly compromised: boolean
  /** `--yes`: do not ask. */
  readonly yes: boolean
  readonly terminal: Terminal
}

type Act = (asked: Asked) => Promise<number>

const time = (seconds: number): string => new Date(seconds * 1000).toISOString().replace('.000', '')

/** `keys list`: every key, oldest first, and where it stands. */
const list: Act = async ({ plan, terminal }) => {
  const keys = await readKeyFolder(plan.folder)
  for (const { key, state, retiresAt } of scheduleKeys(keys, plan.rotation, epochSeconds(systemClock))) {
    const until = retiresAt === undefined ? '' : `  published until ${time(retiresAt)}`
    terminal.stdout.write(
      `${key.file.padEnd(14)}${state.padEnd(11)}${key.kid}  signs from ${time(key.signsFrom)}${until}\n`,
    )
  }
  return EXIT.done
}

async function makeNext({ plan, terminal }: Asked, announce: number): Promise<void> {
  const signsFrom = epochSeconds(systemClock) + announce
  for (const algorithm of plan.algorithms) {
    const generation = (await newestGeneration(plan.folder, algorithm)) + 1
    const { file } = await createKey(plan.folder, { algorithm, generation, signsFrom }, systemClock)
    terminal.stdout.write(`${file}: made, published now, signs from ${time(signsFrom)}\n`)
  }
}

/** `keys rotate`: the next keys, announced first; `--compromised`: see `replaceKeys`. */
const rotate: Act = async (asked) => {
  const { plan, compromised } = asked
  await createPrivateFolder(plan.folder)
  if (compromised) return replaceKeys({ ...asked, folder: plan.folder, makeKeys: () => makeNext(asked, 0) })
  await readKeyFolder(plan.folder)
  await makeNext(asked, plan.rotation.announce)
  return EXIT.done
}

const MARK = { fine: '  ok ', warning: 'WARN ', error: 'FAIL ' } as const

/** `keys doctor`: what is wrong, or will be; exit code 1 if anything is. Changes nothing. */
const doctor: Act = async ({ configuration, plan, terminal }) => {
  const findings = await withStore(configuration, (store) =>
    examineKeys(plan, epochSeconds(systemClock), store),
  )
  for (const { level, text } of findings) terminal.stdout.write(`${MARK[level]}${text}\n`)
  return findings.some(({ level }) => level === 'error') ? EXIT.failed : EXIT.done
}

/** Only a store that is there already: a doctor who makes one would find nothing in it. */
async function withStore<T>(
  { data, store: config }: Configuration,
  act: (store: Awaited<ReturnType<typeof openStore>> | undefined) => Promise<T>,
): Promise<T> {
  const exists = config.kind === 'sqlite' && existsSync(sqliteFile(data))
  const store = exists ? await openStore(config, data, systemClock) : undefined
  try {
    return await act(store)
  } finally {
    await store?.close()
  }
}

const ACTS: Readonly<Record<string, Act>> = { list, rotate, doctor }

/** `postern keys list|rotate|doctor [--config FILE]`: the signing keys of a configuration, which may be serving. */
export const keysCommand: Command = {
  help: `  list                   Which keys there are, and where each stands
  rotate                 Make the next keys, which are published before they sign
  rotate --compromised   Somebody may have read the keys: replace them and the secret of refresh tokens now. All
                         tokens issued so far are refused, all refresh tokens end; it says how many, and asks
    --yes                Do not ask; for scripts
  doctor                 What is wrong with the keys, or will be
  --config FILE          The configuration that is served
`,
  async run(args, terminal) {
    const { positionals, values } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        config: { type: 'string' },
        compromised: { type: 'boolean', default: false },
        yes: { type: 'boolean', default: false },
      },
    })
    const [word = '', ...more] = positionals
    const act = Object.hasOwn(ACTS, word) ? ACTS[word] : undefined
    if (act === undefined || more.length > 0)
      throw new UsageError(`expected one of ${Object.keys(ACTS).join(', ')}`)
    const path = configurationFile(values.config === undefined ? [] : [values.config], terminal)
    const { configuration, report } = readConfiguration(path, terminal.env)
    if (configuration === undefined || report.failed) {
      writeReport(path, report, terminal)
      return EXIT.refused
    }
    const plan = planKeys(configuration.data, configuration.keys, configuration.identity.idToken.lifetime)
    return tellTrouble(
      () => act({ configuration, plan, compromised: values.compromised, yes: values.yes, terminal }),
      terminal,
    )
  },
}

async function tellTrouble(act: () => Promise<number>, { stderr }: Terminal): Promise<number> {
  try {
    return await act()
  } catch (thrown) {
    if (!(thrown instanceof KeyFolderError || thrown instanceof StoreError)) throw thrown
    stderr.write(`postern: ${thrown.message}\n`)
    return EXIT.failed
  }
}
