/** First match wins: most browsers name others too. */
const BROWSERS: readonly (readonly [RegExp, string])[] = [
  [/\bEdg(?:A|iOS)?\//, 'Edge'],
  [/\bOPR\//, 'Opera'],
  [/\bSamsungBrowser\//, 'Samsung Internet'],
  [/\b(?:Firefox|FxiOS)\//, 'Firefox'],
  [/\b(?:Headless)?(?:Chrome|Chromium|CriOS)\//, 'Chrome'],
  [/\bSafari\//, 'Safari'],
]

const SYSTEMS: readonly (readonly [RegExp, string])[] = [
  [/\biPhone\b/, 'iPhone'],
  [/\biPad\b/, 'iPad'],
  [/\bAndroid\b/, 'Android'],
  [/\bWindows\b/, 'Windows'],
  [/\bMac OS X\b/, 'macOS'],
  [/\bCrOS\b/, 'ChromeOS'],
  [/\bLinux\b/, 'Linux'],
]

const named = (text: string, table: typeof BROWSERS): string | undefined =>
  table.find(([pattern]) => pattern.test(text))?.[1]

/** "Firefox on Windows", from a User-Agent header; of what it says nothing else is kept. */
export function browserName(userAgent: string, unknown: string): string {
  const browser = named(userAgent, BROWSERS)
  const system = named(userAgent, SYSTEMS)
  if (browser === undefined) return system ?? unknown
  return system === undefined ? browser : `${browser} on ${system}`
}
