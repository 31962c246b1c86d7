//! Finds functions by name in an image of 64-bit ELF, as far as the kernel's own needs it.

/// Where the file says where its table of sections is, how large an entry is, and how many there are.
const TABLE: usize = 0x28;
const ENTRY_SIZE: usize = 0x3A;
const ENTRIES: usize = 0x3C;
/// The kind of section that has the symbols others may use.
const DYNAMIC_SYMBOLS: u32 = 11;
const SYMBOL_SIZE: usize = 24;

/// An image of 64-bit ELF, in the byte order of x86-64.
pub(crate) struct Image<'a>(&'a [u8]);

/// A section: its kind, which other one it goes with, where it is and how long.
struct Section {
    kind: u32,
    link: usize,
    start: usize,
    size: usize,
}

impl<'a> Image<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Where a function is that others may use.
    pub(crate) fn symbol(&self, name: &str) -> Option<usize> {
        let count = self.number(ENTRIES, 2)?;
        let symbols = (0..count).filter_map(|index| self.section(index)).find(|found| found.kind == DYNAMIC_SYMBOLS)?;
        let names = self.section(symbols.link)?;
        let places = (symbols.start..symbols.start + symbols.size).step_by(SYMBOL_SIZE);
        let mut named = places.filter(|place| {
            let start = self.number(*place, 4).map(|offset| names.start + offset);
            let rest = start.and_then(|start| self.0.get(start..names.start + names.size));
            rest.and_then(|rest| rest.split(|byte| *byte == 0).next()) == Some(name.as_bytes())
        });
        self.number(named.next()? + 8, 8)
    }

    fn section(&self, index: usize) -> Option<Section> {
        let place = self.number(TABLE, 8)? + index * self.number(ENTRY_SIZE, 2)?;
        Some(Section {
            kind: u32::try_from(self.number(place + 4, 4)?).ok()?,
            link: self.number(place + 0x28, 4)?,
            start: self.number(place + 0x18, 8)?,
            size: self.number(place + 0x20, 8)?,
        })
    }

    fn number(&self, place: usize, bytes: usize) -> Option<usize> {
        let mut value = [0; 8];
        value[..bytes].copy_from_slice(self.0.get(place..place.checked_add(bytes)?)?);
        usize::try_from(u64::from_le_bytes(value)).ok()
    }
}
