//! Makes the clock of a container's processes wrong, without root and without their help.
//!
//! Programs read the time from a page of code that the kernel maps into each process (the vDSO). Its pages are private, so
//! a supervisor can lead the three functions that tell the time of day to a few instructions in the empty end of the page:
//! they make the system call and add to its answer. Clocks that only count on are left alone, as on a machine whose clock
//! is wrong. What is mended gets its first bytes back.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;

use crate::elf::Image;

/// The first bytes of a function, which are changed.
const ENTRY: usize = 8;
/// What keeps a thread waiting that comes along while the rest of the entry is changed: a jump to itself.
const SPIN: [u8; 2] = [0xEB, 0xFE];
/// Every detour begins at a multiple of this.
const ALIGNMENT: usize = 16;

/// Makes the code of a detour for a number of seconds.
type Code = fn(i64) -> Vec<u8>;

/// What tells the time of day, and the code that stands in for it.
const DETOURS: [(&str, Code); 3] =
    [("__vdso_clock_gettime", clock_gettime), ("__vdso_gettimeofday", gettimeofday), ("__vdso_time", time)];

/// The functions of this kernel's vDSO, which are the same in every process.
#[derive(Debug)]
pub(crate) struct Skew {
    image: Vec<u8>,
    /// Where each function is, its code for the skew, and where that goes.
    detours: Vec<Detour>,
    seconds: i64,
}

#[derive(Debug)]
struct Detour {
    function: usize,
    place: usize,
    code: Code,
}

impl Skew {
    /// Finds out how the clock can be made wrong by `seconds`.
    ///
    /// # Errors
    /// Why it cannot be.
    pub(crate) fn prepare(seconds: i64) -> Result<Self, String> {
        if !cfg!(target_arch = "x86_64") {
            return Err("clocks can be made wrong on x86-64 only".to_owned());
        }
        let image = own_image().map_err(|error| format!("read the kernel's page of time functions: {error}"))?;
        let functions = Image::new(&image);
        let empty = image.len() - image.iter().rev().take_while(|byte| **byte == 0).count();
        let mut place = empty.next_multiple_of(ALIGNMENT);
        let mut detours = Vec::new();
        for (name, code) in DETOURS {
            let function = functions.symbol(name).ok_or_else(|| format!("this kernel has no {name}"))?;
            detours.push(Detour { function, place, code });
            place += code(seconds).len().next_multiple_of(ALIGNMENT);
        }
        if place > image.len() {
            return Err("the kernel's page of time functions has no room left".to_owned());
        }
        Ok(Self { image, detours, seconds })
    }

    /// Makes the clock of these processes wrong; those that are so already are left as they are.
    ///
    /// # Errors
    /// The first process that could not be reached, and why.
    pub(crate) fn apply(&self, processes: &[i32]) -> Result<(), String> {
        let mut outcome = Ok(());
        for process in processes {
            let done = self.apply_to(*process);
            if outcome.is_ok() && std::path::Path::new(&format!("/proc/{process}")).exists() {
                outcome = done.map_err(|error| format!("change the clock of process {process}: {error}"));
            }
        }
        outcome
    }

    /// Gives these processes their clock back.
    pub(crate) fn mend(&self, processes: &[i32]) {
        for process in processes {
            // A process that ended needs no clock.
            let _ = self.write(*process, |detour| entry(&self.image, detour.function), false);
        }
    }

    fn apply_to(&self, process: i32) -> io::Result<()> {
        self.write(process, |detour| jump(&self.image, detour), true)
    }

    fn write(&self, process: i32, wanted: impl Fn(&Detour) -> [u8; ENTRY], with_code: bool) -> io::Result<()> {
        let Some(base) = base(process)? else { return Ok(()) };
        let memory = OpenOptions::new().read(true).write(true).open(format!("/proc/{process}/mem"))?;
        for detour in &self.detours {
            let at = |offset: usize| base + offset as u64;
            let mut now = [0; ENTRY];
            memory.read_exact_at(&mut now, at(detour.function))?;
            let (own, changed) = (entry(&self.image, detour.function), jump(&self.image, detour));
            if now != own && now != changed {
                return Err(io::Error::other("it has other time functions than this kernel's"));
            }
            let code = (detour.code)(self.seconds);
            if with_code && now_at(&memory, at(detour.place), code.len())? != code {
                memory.write_all_at(&code, at(detour.place))?;
            }
            let wanted = wanted(detour);
            if now != wanted {
                replace(&memory, at(detour.function), wanted)?;
            }
        }
        Ok(())
    }
}

fn now_at(memory: &File, place: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    memory.read_exact_at(&mut bytes, place).map(|()| bytes)
}

/// Changes the beginning of a function while threads may come along: none of them ever sees half of it.
fn replace(memory: &File, place: u64, wanted: [u8; ENTRY]) -> io::Result<()> {
    memory.write_all_at(&SPIN, place)?;
    memory.write_all_at(&wanted[SPIN.len()..], place + SPIN.len() as u64)?;
    memory.write_all_at(&wanted[..SPIN.len()], place)
}

/// The beginning of a function as the kernel made it.
fn entry(image: &[u8], function: usize) -> [u8; ENTRY] {
    let mut bytes = [0; ENTRY];
    bytes.copy_from_slice(&image[function..function + ENTRY]);
    bytes
}

/// The beginning of a function that jumps to its detour.
fn jump(image: &[u8], detour: &Detour) -> [u8; ENTRY] {
    let mut bytes = entry(image, detour.function);
    let distance = (detour.place - detour.function - 5) as u32;
    bytes[0] = 0xE9;
    bytes[1..5].copy_from_slice(&distance.to_le_bytes());
    bytes
}

/// `clock_gettime(clock, time)`: the clocks of the day are 0, 5 (coarse) and 11 (atomic time).
fn clock_gettime(seconds: i64) -> Vec<u8> {
    let mut code = vec![0xB8, 228, 0, 0, 0, 0x0F, 0x05]; // mov eax, 228; syscall
    code.extend([0x85, 0xC0, 0x75, 28]); // test eax, eax; jne end
    code.extend([0x83, 0xFF, 0, 0x74, 10]); // cmp edi, 0; je add
    code.extend([0x83, 0xFF, 5, 0x74, 5]); // cmp edi, 5; je add
    code.extend([0x83, 0xFF, 11, 0x75, 13]); // cmp edi, 11; jne end
    code.extend(load_rcx(seconds)); // add: mov rcx, seconds
    code.extend([0x48, 0x01, 0x0E]); // add [rsi], rcx
    code.push(0xC3); // end: ret
    code
}

/// `gettimeofday(time, zone)`, where `time` may be null.
fn gettimeofday(seconds: i64) -> Vec<u8> {
    let mut code = vec![0xB8, 96, 0, 0, 0, 0x0F, 0x05]; // mov eax, 96; syscall
    code.extend([0x85, 0xC0, 0x75, 18]); // test eax, eax; jne end
    code.extend([0x48, 0x85, 0xFF, 0x74, 13]); // test rdi, rdi; je end
    code.extend(load_rcx(seconds)); // mov rcx, seconds
    code.extend([0x48, 0x01, 0x0F]); // add [rdi], rcx
    code.push(0xC3); // end: ret
    code
}

/// `time(time)`, which may be null, and returns it as well.
fn time(seconds: i64) -> Vec<u8> {
    let mut code = vec![0x57, 0x31, 0xFF]; // push rdi; xor edi, edi
    code.extend([0xB8, 201, 0, 0, 0, 0x0F, 0x05, 0x5F]); // mov eax, 201; syscall; pop rdi
    code.extend(load_rcx(seconds)); // mov rcx, seconds
    code.extend([0x48, 0x01, 0xC8]); // add rax, rcx
    code.extend([0x48, 0x85, 0xFF, 0x74, 3]); // test rdi, rdi; je end
    code.extend([0x48, 0x89, 0x07]); // mov [rdi], rax
    code.push(0xC3); // end: ret
    code
}

fn load_rcx(value: i64) -> Vec<u8> {
    [&[0x48, 0xB9][..], &value.to_le_bytes()].concat()
}

/// The vDSO as this process has it.
fn own_image() -> io::Result<Vec<u8>> {
    let (start, end) = range("self")?.ok_or(io::ErrorKind::NotFound)?;
    let mut image = vec![0; usize::try_from(end - start).unwrap_or(0)];
    File::open("/proc/self/mem")?.read_exact_at(&mut image, start)?;
    Ok(image)
}

/// Where a process has it; none for a process without memory of its own.
fn base(process: i32) -> io::Result<Option<u64>> {
    Ok(range(&process.to_string())?.map(|(start, _)| start))
}

fn range(process: &str) -> io::Result<Option<(u64, u64)>> {
    let maps = std::fs::read_to_string(format!("/proc/{process}/maps"))?;
    let line = maps.lines().find(|line| line.ends_with("[vdso]"));
    let bounds = line.and_then(|line| line.split(' ').next()?.split_once('-'));
    let number = |text| u64::from_str_radix(text, 16).ok();
    Ok(bounds.and_then(|(start, end)| Some((number(start)?, number(end)?))))
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Command, Stdio};
    use std::time::{SystemTime, UNIX_EPOCH};

    use super::*;

    #[test]
    fn the_clock_of_another_process_goes_wrong_and_right_again() {
        // `time` and `Time::HiRes::time` read it in two ways.
        let script = "use Time::HiRes; $| = 1; while (<STDIN>) { printf \"%d %d\\n\", time, Time::HiRes::time() }";
        let mut child = Command::new("perl").args(["-e", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let child = child.as_mut().expect("perl runs");
        let process = i32::try_from(child.id()).unwrap();
        let (mut input, mut output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut difference = move || -> Vec<i64> {
            input.write_all(b"\n").unwrap();
            let mut line = String::new();
            output.read_line(&mut line).unwrap();
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
            line.split_whitespace().map(|said| said.parse::<i64>().unwrap() - i64::try_from(now).unwrap()).collect()
        };
        let near = |differences: Vec<i64>, wanted: i64| {
            assert!(differences.iter().all(|found| (found - wanted).abs() < 60), "{differences:?}, not {wanted}");
        };
        near(difference(), 0);
        let skew = Skew::prepare(-86_400).unwrap();
        skew.apply(&[process]).unwrap();
        near(difference(), -86_400);
        Skew::prepare(7200).unwrap().apply(&[process]).unwrap();
        near(difference(), 7200);
        skew.mend(&[process]);
        near(difference(), 0);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
