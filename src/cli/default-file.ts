/** Which configuration a command takes that was given none. */
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Environment } from '../config/references.ts'

/** The name of the file that `postern init` writes. */
export const OWN_FILE = 'postern.yaml'

const DEMO = 'config/demo.yaml'

/** For the help texts of commands. The demo is in the working folder of a clone and of the container only. */
export const DEFAULT_FILE = `POSTERN_CONFIG, else ${OWN_FILE} here, else ${DEMO}`

/** Undefined if the environment names no file and the working folder has neither file. */
export const defaultFile = (environment: Environment): string | undefined =>
  environment['POSTERN_CONFIG'] || [OWN_FILE, DEMO].find((file) => existsSync(file))

/** The demo that is a part of this Postern, wherever it is installed. */
const shippedDemo = (): string => fileURLToPath(new URL(`../../${DEMO}`, import.meta.url))

/** What to do where there is no default: a message of several lines. */
export const adviceWithoutFile = (): string =>
  `no configuration was named, and this folder has no ${OWN_FILE}. Do one of these:
  postern init     makes a configuration of your own, with new secrets
  POSTERN_CONFIG   names the file for all commands; or name it on the command line
  postern serve ${shippedDemo()}
                   serves the demo`
