/**
 * The hashes in config/demo.yaml, whose secrets everyone knows: a configuration made by copying that file is told
 * so even if it no longer calls itself `demo` (C10). A test keeps them and the file the same.
 */
export const DEMO_HASHES: ReadonlySet<string> = new Set([
  'sha256:LrS2csIIenKerBXhR_QzSOAnV-FAjLrko9uDiwaZEYQ',
  'sha256:UP5Mc29tQTT525IYtFxnGUbtnXLvzf5PtyAhIQu3Sj0',
  'sha256:VmEtZ4CLzi3ozg72CIkoiovoOLeWCO4zQJTCD-BJk_o',
  '$argon2id$v=19$m=19456,t=2,p=1$ONkPwx0e0TE+rLENpK9ssg$OjB8Q/llxpQX5ZPdg/d3WkrQivUVr9DkS90gzdW84vs',
  '$argon2id$v=19$m=19456,t=2,p=1$pyou1U8eafKO+KRSga6twQ$cwMw3nz/iQuVMNyxuvzB8oGHjeePMB8GdVXtwTAxEuo',
  '$argon2id$v=19$m=19456,t=2,p=1$/nutTG3Ts1NkUpaElVlYgw$PsmVTU0jbqNT8Zt0syauCVLPzwPaAeAL5NOzARupsXw',
])
