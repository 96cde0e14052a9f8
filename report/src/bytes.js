// Base64 without the detour over a string as long as the data. What is no base64 digit (line ends) is passed over.

const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
const NONE = 255
const VALUES = new Uint8Array(128).fill(NONE)
for (let value = 0; value < 64; value++) VALUES[DIGITS.charCodeAt(value)] = value

export function fromBase64(text) {
  const bytes = new Uint8Array(Math.ceil(text.length / 4) * 3)
  let length = 0
  let gathered = 0
  let bits = 0
  for (let index = 0; index < text.length; index++) {
    const value = VALUES[text.charCodeAt(index) & 127]
    if (value === NONE) continue
    gathered = ((gathered << 6) | value) & 0xffffff
    bits += 6
    if (bits >= 8) {
      bits -= 8
      bytes[length++] = (gathered >> bits) & 255
    }
  }
  return bytes.subarray(0, length)
}
