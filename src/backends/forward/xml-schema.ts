/** The section `xml` of forwarding backends and of operations (C7.7). */
import {
  choice,
  list,
  literalText,
  mapOf,
  optional,
  section,
  text,
  type Static,
} from '../../config/schema.ts'

const paths = (description: string) =>
  optional(
    list(
      literalText({
        pattern: '^[^/]+(/[^/]+)*$',
        expected: 'names with a "/" between them and none before, such as "Funds/Fund" or "Funds/@total"',
        description: 'Names of elements from the root on, as they are in JSON; `@name` for an attribute.',
      }),
      { unique: true, description },
    ),
  )

/** Without defaults: what an operation leaves out is its backend's. */
export const xmlSchema = section(
  {
    dialect: optional(
      choice(['postern', 'plain'], {
        description:
          '`postern` (default): the mapping that Postern publishes. `plain`: XML as the service itself writes it.',
      }),
    ),
    root: optional(
      text({
        description: 'With `plain`: the element that a JSON body becomes. Default: its one member.',
      }),
    ),
    attributes: optional(
      mapOf(text({ description: 'The value.' }), {
        keys: '^[^\\s=<>"\'/]+$',
        expectedKeys: 'a name of an attribute, such as "version" or "xmlns"',
        description: 'With `plain`: attributes and namespace declarations of that element.',
      }),
    ),
    arrays: paths('With `plain`: elements that are a list in JSON, also where there is one or none.'),
    numbers: paths('With `plain`: elements and attributes that are numbers in JSON. All others are text.'),
    booleans: paths('With `plain`: elements and attributes that are booleans in JSON.'),
    namespaces: optional(
      choice(['keep', 'strip'], {
        description:
          'With `plain`: whether JSON has prefixes and namespace declarations (`keep`, the default) or not.',
      }),
    ),
  },
  { description: 'What XML the service speaks, if its `format` is `xml`.' },
)

export type XmlSection = Static<typeof xmlSchema>
