import { checkConfiguration } from '../check-configuration.ts'
import { configurationFile, tellReport } from './configuration-file.ts'
import { EXIT, type Verb } from './verb.ts'

/** `postern check [FILE]`: every problem at once; exit code 2 if the file would be refused. */
export const checkVerb: Verb = {
  async run(args, terminal) {
    const file = configurationFile(args, terminal)
    const report = await checkConfiguration(file, terminal.env)
    tellReport(file, report, terminal)
    if (report.failed) return EXIT.refused
    terminal.stdout.write(`${file}: fit to serve\n`)
    return EXIT.done
  },
}
