//! Questions and answers in the form in which they travel.

use simple_dns::rdata::{A, CNAME, OPT, PTR, RData, SOA, SRV, TXT};
use simple_dns::{CLASS, Name, OPCODE, Packet, PacketFlag, QCLASS, QTYPE, Question, RCODE, ResourceRecord, TYPE};

use super::zone::{Data, Found, Zone};

/// How long others may remember what they were told.
const TTL: u32 = 5;
/// What a datagram may hold if the other side does not say that it takes more, and what this side takes.
const DATAGRAM_DEFAULT: u16 = 512;
const DATAGRAM_MAX: u16 = 1232;
const HEADER_BYTES: usize = 12;

/// How the question came, and so the answer goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Datagram,
    Stream,
}

/// What is to be done about a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// Send this.
    Send(Vec<u8>),
    /// Ask the machine's servers and send what they say.
    Forward,
    /// Ask them for this name, and send the answer with the alias before it.
    Follow { alias: String },
    /// Say nothing: it is no question.
    Ignore,
}

/// Answers a message from what is known here.
pub(super) fn reply(zone: Zone<'_>, bytes: &[u8], way: Way) -> Reply {
    let query = match Packet::parse(bytes) {
        Ok(query) if query.has_flags(PacketFlag::RESPONSE) => return Reply::Ignore,
        Ok(query) => query,
        Err(_) => return malformed(bytes),
    };
    let [question] = query.questions.as_slice() else { return fail(&query, RCODE::FormatError, way) };
    if query.opcode() != OPCODE::StandardQuery {
        return fail(&query, RCODE::NotImplemented, way);
    }
    if !matches!(question.qclass, QCLASS::CLASS(CLASS::IN) | QCLASS::ANY) {
        return fail(&query, RCODE::Refused, way);
    }
    match zone.find(&question.qname.to_string()) {
        Found::Elsewhere => Reply::Forward,
        Found::Alias(alias) => match zone.find(&alias) {
            Found::Records(records) => {
                let mut answer = begin(&query);
                answer.answers.push(alias_record(question, &alias));
                add(&mut answer, &Name::new_unchecked(&alias).into_owned(), question.qtype, &records);
                Reply::Send(write(answer, &query, way))
            }
            _ => Reply::Follow { alias },
        },
        Found::Nothing => {
            let mut answer = begin(&query);
            *answer.rcode_mut() = RCODE::NameError;
            answer.name_servers.push(authority(zone.domain));
            Reply::Send(write(answer, &query, way))
        }
        Found::Records(mut records) => {
            // Clients take the first address: each gets another one first.
            let turn = usize::from(query.id()) % records.len().max(1);
            records.rotate_left(turn);
            let mut answer = begin(&query);
            add(&mut answer, &question.qname, question.qtype, &records);
            if answer.answers.is_empty() {
                answer.name_servers.push(authority(zone.domain));
            }
            Reply::Send(write(answer, &query, way))
        }
    }
}

/// The question that is asked elsewhere for an alias.
pub(super) fn follow_up(bytes: &[u8], alias: &str) -> Option<Vec<u8>> {
    let query = Packet::parse(bytes).ok()?;
    let question = query.questions.first()?;
    let mut packet = Packet::new_query(query.id());
    packet.set_flags(PacketFlag::RECURSION_DESIRED);
    packet.questions.push(Question::new(Name::new(alias).ok()?, question.qtype, question.qclass, false));
    packet.build_bytes_vec().ok()
}

/// The answer about an alias: the alias, and what others said about it.
pub(super) fn followed(bytes: &[u8], alias: &str, said: Option<&[u8]>, way: Way) -> Vec<u8> {
    let Ok(query) = Packet::parse(bytes) else { return Vec::new() };
    let mut answer = begin(&query);
    if let Some(question) = query.questions.first() {
        answer.answers.push(alias_record(question, alias));
    }
    if let Some(said) = said.and_then(|said| Packet::parse(said).ok()) {
        answer.answers.extend(said.answers.into_iter().map(ResourceRecord::into_owned));
    }
    write(answer, &query, way)
}

/// Says that nobody could be asked.
pub(super) fn unanswered(bytes: &[u8], way: Way) -> Option<Vec<u8>> {
    let query = Packet::parse(bytes).ok()?;
    match fail(&query, RCODE::ServerFailure, way) {
        Reply::Send(answer) => Some(answer),
        _ => None,
    }
}

fn begin<'a>(query: &Packet<'a>) -> Packet<'a> {
    let mut answer = Packet::new_reply(query.id());
    answer.set_flags(PacketFlag::RECURSION_AVAILABLE | PacketFlag::AUTHORITATIVE_ANSWER);
    if query.has_flags(PacketFlag::RECURSION_DESIRED) {
        answer.set_flags(PacketFlag::RECURSION_DESIRED);
    }
    answer.questions = query.questions.clone();
    answer
}

/// Writes an answer; one that does not fit into a datagram says so, and the client comes again by a stream.
fn write(mut answer: Packet<'_>, query: &Packet<'_>, way: Way) -> Vec<u8> {
    let mut room = DATAGRAM_DEFAULT;
    if let Some(opt) = query.opt() {
        room = opt.udp_packet_size.clamp(DATAGRAM_DEFAULT, DATAGRAM_MAX);
        *answer.opt_mut() = Some(OPT { opt_codes: Vec::new(), udp_packet_size: DATAGRAM_MAX, version: 0 });
    }
    let bytes = answer.build_bytes_vec_compressed().unwrap_or_default();
    if way == Way::Stream || bytes.len() <= usize::from(room) {
        return bytes;
    }
    answer.set_flags(PacketFlag::TRUNCATION);
    answer.answers.clear();
    answer.additional_records.clear();
    answer.build_bytes_vec_compressed().unwrap_or_default()
}

fn fail(query: &Packet<'_>, code: RCODE, way: Way) -> Reply {
    let mut answer = begin(query);
    *answer.rcode_mut() = code;
    Reply::Send(write(answer, query, way))
}

/// Whoever sends something unreadable is told so, if it has a number to tell it under.
fn malformed(bytes: &[u8]) -> Reply {
    let Some([high, low]) = bytes.get(..2).filter(|_| bytes.len() >= HEADER_BYTES) else { return Reply::Ignore };
    let is_answer = bytes[2] & 0x80 != 0;
    if is_answer {
        return Reply::Ignore;
    }
    let mut answer = Packet::new_reply(u16::from_be_bytes([*high, *low]));
    *answer.rcode_mut() = RCODE::FormatError;
    answer.build_bytes_vec().map_or(Reply::Ignore, Reply::Send)
}

/// Adds the records that were asked for, and the addresses of the servers among them.
fn add<'a>(answer: &mut Packet<'a>, name: &Name<'a>, kind: QTYPE, records: &[Data]) {
    let wants = |record: TYPE| kind == QTYPE::TYPE(record) || kind == QTYPE::ANY;
    for record in records {
        let data = match record {
            Data::Address(address) if wants(TYPE::A) => RData::A(A { address: (*address).into() }),
            Data::Server { port, target, address } if wants(TYPE::SRV) => {
                let target = Name::new_unchecked(target).into_owned();
                let place = RData::A(A { address: (*address).into() });
                answer.additional_records.push(ResourceRecord::new(target.clone(), CLASS::IN, TTL, place));
                RData::SRV(SRV { priority: 0, weight: 100, port: *port, target })
            }
            Data::Pointer(target) if wants(TYPE::PTR) => RData::PTR(PTR(Name::new_unchecked(target).into_owned())),
            Data::Text(text) if wants(TYPE::TXT) => match TXT::new().with_string(text) {
                Ok(text) => RData::TXT(text.into_owned()),
                Err(_) => continue,
            },
            _ => continue,
        };
        answer.answers.push(ResourceRecord::new(name.clone(), CLASS::IN, TTL, data));
    }
}

fn alias_record<'a>(question: &Question<'a>, alias: &str) -> ResourceRecord<'a> {
    let target = CNAME(Name::new_unchecked(alias).into_owned());
    ResourceRecord::new(question.qname.clone(), CLASS::IN, TTL, RData::CNAME(target))
}

/// Says how long it may be remembered that something does not exist.
fn authority<'a>(domain: &str) -> ResourceRecord<'a> {
    let name = |text: String| Name::new_unchecked(&text).into_owned();
    let soa = SOA {
        mname: name(format!("ns.dns.{domain}")),
        rname: name(format!("hostmaster.{domain}")),
        serial: 1,
        refresh: 7200,
        retry: 1800,
        expire: 86400,
        minimum: TTL,
    };
    ResourceRecord::new(name(domain.to_owned()), CLASS::IN, TTL, RData::SOA(soa))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::proxy::World;
    use crate::proxy::tests::{service, slice, world};

    fn query(name: &str, kind: TYPE) -> Vec<u8> {
        let mut query = Packet::new_query(7);
        query.set_flags(PacketFlag::RECURSION_DESIRED);
        let question = Question::new(Name::new(name).unwrap(), kind.into(), CLASS::IN.into(), false);
        query.questions.push(question);
        query.build_bytes_vec().unwrap()
    }

    fn ask(world: &World, query: &[u8], way: Way) -> Vec<u8> {
        match reply(Zone { domain: "cluster.local", world }, query, way) {
            Reply::Send(answer) => answer,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_question_is_answered_under_its_number() {
        let world = world(&[service()], &[]);
        let bytes = ask(&world, &query("web.n.svc.cluster.local", TYPE::A), Way::Datagram);
        let answer = Packet::parse(&bytes).unwrap();
        assert_eq!((answer.id(), answer.rcode(), answer.questions.len()), (7, RCODE::NoError, 1));
        assert!(answer.has_flags(PacketFlag::RESPONSE | PacketFlag::RECURSION_AVAILABLE));
        let RData::A(A { address }) = answer.answers[0].rdata else { panic!("{answer:?}") };
        assert_eq!(std::net::Ipv4Addr::from(address).to_string(), "127.64.0.9");
    }

    #[test]
    fn a_name_without_such_records_exists_and_an_unknown_one_does_not() {
        let world = world(&[service()], &[]);
        for (name, kind, code) in [
            ("web.n.svc.cluster.local", TYPE::AAAA, RCODE::NoError),
            ("no.n.svc.cluster.local", TYPE::A, RCODE::NameError),
        ] {
            let bytes = ask(&world, &query(name, kind), Way::Datagram);
            let answer = Packet::parse(&bytes).unwrap();
            assert_eq!((answer.rcode(), answer.answers.len(), answer.name_servers.len()), (code, 0, 1), "{name}");
        }
    }

    #[test]
    fn what_does_not_fit_comes_by_a_stream() {
        let mut headless = service();
        headless["spec"]["clusterIP"] = json!("None");
        let mut many = slice(true);
        let endpoint = |last: u8| json!({"addresses": [format!("127.64.129.{last}")]});
        many["endpoints"] = (1..=100).map(endpoint).collect();
        let world = world(&[headless], &[many]);
        let question = query("web.n.svc.cluster.local", TYPE::A);
        let bytes = ask(&world, &question, Way::Datagram);
        let cut = Packet::parse(&bytes).unwrap();
        assert!(cut.has_flags(PacketFlag::TRUNCATION) && cut.answers.is_empty());
        let bytes = ask(&world, &question, Way::Stream);
        assert_eq!(Packet::parse(&bytes).unwrap().answers.len(), 100);
    }

    #[test]
    fn an_alias_is_told_with_what_it_stands_for() {
        let mut external = service();
        external["spec"] = json!({"type": "ExternalName", "externalName": "db.example.com"});
        let world = world(&[external], &[]);
        let question = query("web.n.svc.cluster.local", TYPE::A);
        let zone = Zone { domain: "cluster.local", world: &world };
        let alias = "db.example.com".to_owned();
        assert_eq!(reply(zone, &question, Way::Datagram), Reply::Follow { alias: alias.clone() });
        let mut said = Packet::parse(&question).unwrap().into_reply();
        let address = RData::A(A { address: 0x0102_0304 });
        said.answers.push(ResourceRecord::new(Name::new_unchecked(&alias), CLASS::IN, 60, address));
        let said = said.build_bytes_vec().unwrap();
        let bytes = followed(&question, &alias, Some(&said), Way::Datagram);
        let answer = Packet::parse(&bytes).unwrap();
        assert!(matches!(answer.answers[0].rdata, RData::CNAME(_)));
        assert!(matches!(answer.answers[1].rdata, RData::A(A { address: 0x0102_0304 })));
    }

    #[test]
    fn nonsense_is_refused_or_ignored() {
        let world = World::default();
        let zone = Zone { domain: "cluster.local", world: &world };
        assert_eq!(reply(zone, b"", Way::Datagram), Reply::Ignore);
        assert_eq!(reply(zone, &[0; 11], Way::Datagram), Reply::Ignore);
        let mut answer = query("a.cluster.local", TYPE::A);
        answer[2] |= 0x80;
        assert_eq!(reply(zone, &answer, Way::Datagram), Reply::Ignore);
        let mut cut = query("a.cluster.local", TYPE::A);
        cut.truncate(20);
        let Reply::Send(refusal) = reply(zone, &cut, Way::Datagram) else { panic!("a question") };
        assert_eq!(Packet::parse(&refusal).unwrap().rcode(), RCODE::FormatError);
        assert_eq!(reply(zone, &query("example.com", TYPE::A), Way::Datagram), Reply::Forward);
    }
}
