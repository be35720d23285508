import { existsSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { readConfiguration, type Configuration } from '../settings/configuration.ts'
import { epochSeconds, systemClock } from '../kernel/clock.ts'
import { planKeys } from '../keys/config.ts'
import { examineKeys } from '../keys/examine-folder.ts'
import { readKeyFolder } from '../keys/key-folder.ts'
import { createPrivateFolder, KeyFolderError } from '../keys/private-folder.ts'
import type { ListedKey } from '../operations/key-orders.ts'
import { listKeys } from '../start/key-control.ts'
import { printJson } from './terminal.ts'
import type { KeysPlan } from '../keys/service-keys.ts'
import { sqliteFile } from '../stores/config.ts'
import { ANSWER_COMMAND_WITHIN, openStore } from '../stores/open-store.ts'
import { StoreError } from '../stores/store-error.ts'
import { ORDER, ORDER_HELP, type OrderOptions } from './order-options.ts'
import { recorded } from './recorded-act.ts'
import { configurationFile, EXIT, writeReport, type Terminal, UsageError, type Command } from './command.ts'
import { keyTime, madeLine } from './key-text.ts'
import { replaceKeysByCommand } from './replace-keys.ts'
import { makeNextKey, nextKeyName, signsAfterAnnouncement } from '../start/rotate-keys.ts'

interface KeysRequest {
  readonly options: OrderOptions
  readonly configuration: Configuration
  readonly plan: KeysPlan
  /** `--compromised`. */
  readonly compromised: boolean
  /** `--yes`: do not ask. */
  readonly yes: boolean
  /** `--json`. */
  readonly json: boolean
  readonly terminal: Terminal
}

type Action = (request: KeysRequest) => Promise<number>

const keyLine = ({ name, kid, state, signsFrom, endsAt, nextRotationAt }: ListedKey): string => {
  const until = endsAt === undefined ? '' : `  published until ${keyTime(endsAt)}`
  const next = nextRotationAt === undefined ? '' : `  until ${keyTime(nextRotationAt)}`
  return `${`${name}.jwk`.padEnd(14)}${state.padEnd(11)}${kid}  signs from ${keyTime(signsFrom)}${next}${until}\n`
}

/** `keys list`: every key with its state, oldest first. */
const list: Action = async ({ plan, json, terminal }) => {
  const keys = await listKeys(plan, systemClock)
  if (json) printJson({ keys }, terminal)
  else for (const key of keys) terminal.stdout.write(keyLine(key))
  return EXIT.done
}

/** `keys rotate`: makes the next keys, which are published before they sign. `--compromised`: see `replaceKeys`. */
const rotate: Action = async (request) => {
  const { plan, compromised, terminal } = request
  await createPrivateFolder(plan.folder)
  if (compromised)
    return recorded(request, { event: 'keys.compromised', on: { kind: 'key' } }, () =>
      replaceKeysByCommand(request),
    )
  await readKeyFolder(plan.folder)
  for (const algorithm of plan.algorithms) {
    const id = await nextKeyName(plan, algorithm)
    await recorded(request, { event: 'keys.announced', on: { kind: 'key', id } }, async () => {
      const signsFrom = signsAfterAnnouncement(plan, systemClock)
      terminal.stdout.write(madeLine(await makeNextKey(plan, algorithm, signsFrom, systemClock)))
      return EXIT.done
    })
  }
  return EXIT.done
}

const MARK = { fine: '  ok ', warning: 'WARN ', error: 'FAIL ' } as const

/** `keys doctor`: lists problems of the keys, also coming ones. Exit code 1 if there is an error. Changes nothing. */
const doctor: Action = async ({ configuration, plan, terminal }) => {
  const findings = await withStore(configuration, (store) =>
    examineKeys(plan, epochSeconds(systemClock), store),
  )
  for (const { level, text } of findings) terminal.stdout.write(`${MARK[level]}${text}\n`)
  return findings.some(({ level }) => level === 'error') ? EXIT.failed : EXIT.done
}

/** Opens the store if it exists. It is not created: `doctor` changes nothing. */
async function withStore<T>(
  { data, store: config }: Configuration,
  act: (store: Awaited<ReturnType<typeof openStore>> | undefined) => Promise<T>,
): Promise<T> {
  const exists = config.kind === 'sqlite' && existsSync(sqliteFile(data))
  const options = { answerWithin: ANSWER_COMMAND_WITHIN }
  const store = exists ? await openStore(config, data, systemClock, options) : undefined
  try {
    return await act(store)
  } finally {
    await store?.close()
  }
}

const ACTIONS: Readonly<Record<string, Action>> = { list, rotate, doctor }

/** `postern keys list|rotate|doctor`: the signing keys, also while the service runs. */
export const keysCommand: Command = {
  help: `Usage: postern keys list|rotate|doctor …

  list [--json]          List the keys with their states
  rotate                 Make the next keys. They are published before they sign
  rotate --compromised   If somebody may have read the keys: replace them and the secret of refresh tokens now.
                         All tokens issued so far are refused, and all refresh tokens end. It says how many, and asks
    --yes                Do not ask; for scripts
  doctor                 List problems of the keys, also coming ones
${ORDER_HELP}
`,
  async run(args, terminal) {
    const { positionals, values } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        ...ORDER,
        compromised: { type: 'boolean', default: false },
        yes: { type: 'boolean', default: false },
        json: { type: 'boolean', default: false },
      },
    })
    const [word = '', ...more] = positionals
    const action = Object.hasOwn(ACTIONS, word) ? ACTIONS[word] : undefined
    if (action === undefined || more.length > 0)
      throw new UsageError(`expected one of ${Object.keys(ACTIONS).join(', ')}`)
    const path = configurationFile(values.config === undefined ? [] : [values.config], terminal)
    const { configuration, report } = readConfiguration(path, terminal.env)
    if (configuration === undefined || report.failed) {
      writeReport(path, report, terminal)
      return EXIT.refused
    }
    const plan = planKeys(configuration.data, configuration.keys, configuration.identity.idToken.lifetime)
    return withPlainErrors(
      () =>
        action({
          options: values,
          configuration,
          plan,
          compromised: values.compromised,
          yes: values.yes,
          json: values.json,
          terminal,
        }),
      terminal,
    )
  },
}

/** Errors of the key folder and of the store become a message and the exit code 1. */
async function withPlainErrors(action: () => Promise<number>, { stderr }: Terminal): Promise<number> {
  try {
    return await action()
  } catch (thrown) {
    if (!(thrown instanceof KeyFolderError || thrown instanceof StoreError)) throw thrown
    stderr.write(`postern: ${thrown.message}\n`)
    return EXIT.failed
  }
}
