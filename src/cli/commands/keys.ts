/** `postern keys doctor|rewrap`: what is done with the signing keys in this process, also while the service runs. */
import type { Store } from '../../base/contracts/records/store.ts'
import { resealValues, sealedValues } from '../../identity/directory/records/values.ts'
import { epochSeconds } from '../../base/kernel/clock.ts'
import { Fault } from '../../base/kernel/faults.ts'
import { examineKeys } from '../../identity/keys/signing/examine-keys.ts'
import { KeyError } from '../../base/kernel/key-error.ts'
import { type Diagnosis, diagnosisLine, failing } from '../../base/kernel/diagnosis.ts'
import type { KeyPlace, Rewrapped } from '../../identity/keys/signing/key-place.ts'
import { printJson, type Terminal } from '../../operate/operation/terminal.ts'
import { EXIT } from '../../operate/operation/verb.ts'
import type { Configuration } from '../../operate/settings/configuration.ts'
import { OpenedKeys } from '../../serve/parts/key-plan.ts'
import { StoreError } from '../../state/stores/link/store-error.ts'
import type { CallOptions } from '../line/call-options.ts'
import { commandOf, configurationFile, orTellTrouble, writeReport } from '../line/command.ts'
import { recorded } from '../engine/recorded-act.ts'
import { KEYS } from '../line/tables.ts'
import { SETTINGS } from '../../serve/start/settings.ts'

interface KeysRequest {
  readonly options: CallOptions & { readonly json?: boolean | undefined }
  readonly configuration: Configuration
  readonly keys: OpenedKeys
  readonly terminal: Terminal
}

type Action = (request: KeysRequest) => Promise<number>

/** `keys doctor`: lists problems of the keys, also coming ones. Exit code 1 if there is an error. Changes nothing. */
const doctor: Action = async ({ keys, options, terminal }) => {
  const store = await keys.store()
  const findings = [
    ...(await examineKeys(keys.plan, epochSeconds(keys.clock), store)),
    ...(store === undefined ? [] : await examineValues(store, keys.plan.place)),
  ]
  if (options.json === true) printJson({ findings }, terminal)
  else for (const finding of findings) terminal.stdout.write(diagnosisLine(finding))
  return findings.some(({ level }) => level === 'error') ? EXIT.failed : EXIT.done
}

/** Whether all secret values of businesses can be opened, and will be once an older seal is removed. */
async function examineValues(store: Pick<Store, 'list'>, place: KeyPlace): Promise<readonly Diagnosis[]> {
  const all = await sealedValues(store, place)
  const unopened = all.filter(({ canBeOpened }) => !canBeOpened)
  const open = all.filter(({ canBeOpened }) => canBeOpened)
  return [
    ...unopened.map(({ title }) =>
      failing(
        `${title}: this value of a business cannot be opened. Restore its seal, or give the business the value again.`,
      ),
    ),
    ...(place.olderSeals?.(open) ?? []),
  ]
}

/** `keys rewrap`: seals with the first seal what an older one has sealed. */
const rewrap: Action = async (request) => {
  const { keys, options, terminal } = request
  const { place } = keys.plan
  if (place.rewrap === undefined) {
    terminal.stderr.write(`postern: the keys are in ${place.name}, and not sealed\n`)
    return EXIT.refused
  }
  const seal = place.rewrap.bind(place)
  return recorded(request, { event: 'keys.resealed' }, async () => {
    const rewrapped = await seal()
    const store = await keys.store()
    const values = store && (await resealValues(store, place, place))
    const all = {
      sealed: [...rewrapped.sealed, ...(values?.sealed ?? [])],
      already: [...rewrapped.already, ...(values?.already ?? [])],
    }
    if (options.json === true) printJson(all, terminal)
    else printRewrapped(all, terminal)
    return EXIT.done
  })
}

function printRewrapped({ sealed, already }: Rewrapped, { stdout }: Terminal): void {
  for (const title of sealed) stdout.write(`${title}: sealed with the first seal now\n`)
  for (const title of already) stdout.write(`${title}: was sealed with the first seal already\n`)
}

/**
 * Does an action with the keys of the configuration. An error that an operator can mend becomes a message and the exit
 * code 1.
 */
const onKeys =
  (action: Action, reads: boolean) =>
  async ({ values: options }: { readonly values: KeysRequest['options'] }, terminal: Terminal) => {
    const path = configurationFile(options.config, terminal)
    const { configuration, problems } = SETTINGS.read(path, terminal.env)
    if (configuration === undefined || problems.failed) {
      writeReport(path, problems, terminal)
      return EXIT.refused
    }
    const work = async (): Promise<number> => {
      await using keys = await OpenedKeys.open(configuration, reads, SETTINGS.added.stores)
      return await action({ options, configuration, keys, terminal })
    }
    return orTellTrouble([KeyError, StoreError, Fault], work, terminal)
  }

export const keysCommand = commandOf(KEYS, { doctor: onKeys(doctor, true), rewrap: onKeys(rewrap, false) })
